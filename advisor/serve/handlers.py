"""Routes of our own: pages with a cap on visitors, and scripts that the browser keeps."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import tornado.ioloop
import tornado.web
from jupyter_core.utils import ensure_async
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.iostream import StreamClosedError
from voila.handler import BaseVoilaHandler
from voila.tornado.handler import TornadoVoilaHandler

from advisor.serve.front import Script

#: What a page may load: this server, and what it makes itself (widget modules are blobs; Vega compiles its expressions).
CONTENT_POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline' blob:",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'self'",
    ]
)
#: Seconds a page has to connect before its kernel is taken back: link previews and robots read a page and never do.
UNCLAIMED = 60


class Headers(tornado.web.OutputTransform):
    """Security headers on every answer, and a browser's cache for files that only change with a new version."""

    def __init__(self, request: HTTPServerRequest) -> None:
        self.path = request.path

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Called by Tornado before an answer's first part goes out."""
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "same-origin"
        headers["Content-Security-Policy"] = CONTENT_POLICY
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        headers["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
        headers.pop("Server", None)
        if status_code in (200, 304) and ("/voila/static/" in self.path or "/voila/labextensions/" in self.path):
            headers["Cache-Control"] = "private, max-age=3600"
        return status_code, headers, chunk

    def transform_chunk(self, chunk: bytes, finishing: bool) -> bytes:
        """The rest is left as it is."""
        return chunk


class Place:
    """A visitor's place while the page is made. kernel_id: the kernel that stands for it from then on, once it is known."""

    kernel_id: str | None = None


class Places:
    """How many visitors are served at once. A preheated kernel that nobody has been given takes no place."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.coming: set[Place] = set()
        self.given: set[str] = set()

    def taken(self, manager: Any) -> int:
        """Places in use now: of pages that are being made, and of those whose kernel still runs; each visitor counts once."""
        self.given &= set(manager.list_kernel_ids())
        known = {one.kernel_id for one in self.coming if one.kernel_id}
        return len(self.given | known) + sum(one.kernel_id is None for one in self.coming)

    @contextlib.contextmanager
    def reserved(self) -> Iterator[Place]:
        """One place, until the block ends and, where it names a kernel, as long as that runs."""
        place = Place()
        self.coming.add(place)
        try:
            yield place
        finally:
            self.coming.discard(place)
            if place.kernel_id:
                self.given.add(place.kernel_id)


class Recording:
    """A kernel manager that tells which kernel it gives to a page."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        self.place = Place()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.manager, name)

    async def start_kernel(self, **options: Any) -> str:
        """As the manager's."""
        self.place.kernel_id = str(uuid.uuid4())  # known before it is listed: nobody is counted twice
        return await ensure_async(self.manager.start_kernel(**options, kernel_id=self.place.kernel_id))

    async def get_rendered_notebook(self, **options: Any) -> Any:
        """As the manager's."""
        found = await self.manager.get_rendered_notebook(**options)
        self.place.kernel_id = found[2]
        return found


class PageHandler(TornadoVoilaHandler):
    """A notebook as a page, for as many visitors as there are places."""

    def initialize(self, places: Places, **options: Any) -> None:
        """As Voila's, with the places."""
        super().initialize(**options)
        self.places = places
        self._recording: Recording | None = None

    @property
    def kernel_manager(self) -> Any:
        """The server's, recording what it gives to this page."""
        if self._recording is None:
            self._recording = Recording(super().kernel_manager)
        return self._recording

    @tornado.web.authenticated
    async def get(self, path: str | None = None) -> None:
        """The page, or the one that says that all places are taken."""
        manager = self.settings["kernel_manager"]
        await drop_dead(manager)
        if self.places.taken(manager) >= self.places.most:
            self.set_status(503)
            self.set_header("Retry-After", "20")
            self.finish(self.render_template("503.html", places=self.places.most))
            return
        with self.places.reserved() as self.kernel_manager.place:
            try:
                async for part in self.get_generator(path=path):
                    self.write(part)
                    await self.flush()
            except StreamClosedError:
                await self._take_back(manager)
                return
        kernel_id = self.kernel_manager.place.kernel_id
        if kernel_id is not None:
            tornado.ioloop.IOLoop.current().call_later(UNCLAIMED, take_back_unclaimed, manager, kernel_id)

    async def _take_back(self, manager: Any) -> None:
        """The visitor left while the page was being made."""
        kernel_id = self.kernel_manager.place.kernel_id
        if kernel_id is not None and kernel_id in manager:
            await ensure_async(manager.shutdown_kernel(kernel_id, now=True))


async def take_back_unclaimed(manager: Any, kernel_id: str) -> None:
    """Shut a kernel down whose page never connected."""
    if kernel_id in manager and not manager._kernel_connections.get(kernel_id):
        await ensure_async(manager.shutdown_kernel(kernel_id, now=True))


async def drop_dead(manager: Any) -> None:
    """Take preheated kernels that have died out of their pools: whoever is given one waits for ever."""
    for name, pool in getattr(manager, "_pools", {}).items():
        for task in list(pool):
            if not task.done():
                continue
            dead = task.cancelled() or task.exception() is not None
            if not dead:
                kernel_id = task.result()["kernel_id"]
                dead = kernel_id not in manager or not await ensure_async(manager.is_alive(kernel_id))
            if dead and task in pool:
                pool.remove(task)
                manager.fill_if_needed(delay=0, notebook_name=name)


class MissingHandler(BaseVoilaHandler):
    """Any other address: the page that says so."""

    async def prepare(self) -> None:
        """For every method."""
        await super().prepare()
        raise tornado.web.HTTPError(404)


class ScriptHandler(tornado.web.RequestHandler):
    """Scripts that the browser keeps: their names change with their content, and they are the same for every visitor."""

    def initialize(self, scripts: list[Script]) -> None:
        """scripts: those there are."""
        self.scripts = {one.name: one for one in scripts}

    async def get(self, name: str) -> None:
        """The script of this version; any other name is not found."""
        if name not in self.scripts:
            raise tornado.web.HTTPError(404)
        packed = "gzip" in self.request.headers.get("Accept-Encoding", "")
        form = "packed" if packed else "plain"
        content = await tornado.ioloop.IOLoop.current().run_in_executor(None, getattr, self.scripts[name], form)
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "public, max-age=31536000, immutable")
        self.set_header("Vary", "Accept-Encoding")
        if packed:
            self.set_header("Content-Encoding", "gzip")
        self.finish(content)
