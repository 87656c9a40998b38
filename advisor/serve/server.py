"""The server: Voila's own, with its doors closed and its answers compressed."""

from __future__ import annotations

import contextlib
import functools
import logging
import shutil
import sys
import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import tornado.web
import traitlets
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_core.utils import run_sync
from jupyter_server.utils import url_path_join
from traitlets.config import Config
from voila.app import Voila
from voila.tornado.handler import TornadoVoilaHandler

from advisor.serve import rendering
from advisor.serve.front import Script, front
from advisor.serve.handlers import Headers, MissingHandler, PageHandler, Places, ScriptHandler
from advisor.serve.nursery import OPTIONS, Nursery
from advisor.ui.bundle import bundle, file_name

#: Front-end extensions a page loads. Others that happen to be installed would be loaded too, and some break it.
EXTENSIONS = ["@jupyter-widgets/jupyterlab-manager", "@voila-dashboards/widgets-manager8", "anywidget"]
#: Seconds without a sign of life after which a kernel goes. An open page that is used sends one every 15 s.
IDLE = 600


class Kernels(KernelSpecManager):
    """One kernel: this Python. The "python3" that another program put into the user's folder may lack this package."""

    #: What starts a session; an ordinary kernel where there is no nursery.
    argv: tuple[str, ...] = (sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}")

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The same for every name a notebook carries."""
        return KernelSpec(
            argv=[*self.argv, *OPTIONS],
            env={"PYDEVD_DISABLE_FILE_VALIDATION": "1"},
            display_name="Python",
            language="python",
            metadata={},
        )

    def find_kernel_specs(self) -> dict[str, str]:
        """The names there are: one."""
        return {"python3": ""}


def settings(
    *,
    host: str,
    port: int,
    token: str,
    max_sessions: int,
    preheat: bool,
    base_url: str,
    open_browser: bool,
    folder: Path,
) -> Config:
    """Everything that differs from Voila's defaults, with the reason."""
    config = Config()
    app = config.AdvisorVoila
    app.ip, app.port, app.base_url = host, port, base_url
    app.open_browser = open_browser
    app.root_dir = str(Path(folder).resolve())
    app.max_sessions = max_sessions
    app.log_level = logging.ERROR
    if token:
        app.token = token
    look = config.VoilaConfiguration
    look.template = "advisor"  # nothing from other hosts
    look.allow_template_override = "NO"  # ?template=classic would bring jQuery from a CDN
    look.allow_theme_override = "NO"
    look.file_allowlist = []  # images of the folder are allowed by default
    look.extension_allowlist = EXTENSIONS
    look.kernel_spec_manager_class = Kernels
    look.preheat_kernel = preheat
    look.default_pool_size = 1
    look.show_tracebacks = False
    look.strip_sources = True
    cells = config.VoilaExecutor
    cells.store_widget_state = False  # the page asks the session itself
    cells.iopub_timeout = 120  # after 4 s a busy server would send a page without its application
    cells.raise_on_iopub_timeout = True
    config.AsyncIOLoopKernelManager.client_class = f"{rendering.__name__}.Client"
    culling = config.MappingKernelManager
    culling.cull_idle_timeout, culling.cull_interval, culling.cull_connected = IDLE, 60, True
    return config


class AdvisorVoila(Voila):
    """Voila for this package. Configured by `settings`; configuration files of the machine are not read."""

    max_sessions = traitlets.Int(20, config=True, help="Visitors at once.")

    def load_config_file(self, *arguments: Any, **options: Any) -> None:
        """None: a voila.json in the working folder would open what `settings` closes."""

    def init_settings(self) -> dict[str, Any]:
        """Compression, headers and the beacon of closed pages, which Voila's `tornado_settings` sets too late or not at all."""
        self.places = Places(self.max_sessions)
        self.connection_dir_root = tempfile.gettempdir()
        found = super().init_settings()
        self.nursery = Nursery() if sys.platform.startswith("linux") else None
        if self.nursery:
            self.kernel_spec_manager.argv = tuple(self.nursery.argv)
        self.kernel_manager.connection_dir = self.connection_dir
        found.update(
            transforms=[Headers, tornado.web.GZipContentEncoding],
            websocket_compression_options={},
            # An open page speaks every 15 s by itself. A ping of the server's would close what has not answered when it is due.
            ws_ping_interval=0,
            # A closed page tells the server by a beacon, which cannot carry the token of Jupyter's request forgery check: its
            # kernel would live for ever. Every route that changes anything needs a kernel's unguessable id.
            disable_check_xsrf=True,
            serve_traceback=False,
        )
        return found

    def init_handlers(self) -> list[Any]:
        """Voila's routes, with pages counted, and the scripts beside them."""
        handlers = []
        for route, handler, *rest in super().init_handlers():
            if handler is TornadoVoilaHandler:
                handler = PageHandler
                rest = [{**rest[0], "places": self.places}]
            handlers.append((route, handler, *rest))
        scripts = (url_path_join(self.server_url, r"/advisor/([\w.-]+\.js)"), ScriptHandler, {"scripts": self.scripts})
        missing = (r".*", MissingHandler, {"voila_configuration": self.voila_configuration})
        return [scripts, *handlers, missing]

    @functools.cached_property
    def scripts(self) -> list[Script]:
        """The page's scripts and the Vega bundle, which are made now rather than at the first visit."""
        statics = [Path(folder) for folder in self.static_paths]
        static = next(folder for folder in statics if (folder / "voila.js").exists())
        extensions = [Path(folder, name, "static") for name in EXTENSIONS for folder in self.labextensions_path]
        found = [front(static, extensions), Script(file_name(), lambda: bundle()[0])]
        for one in found:
            threading.Thread(target=lambda one=one: one.packed, daemon=True).start()
        return found

    def initialize(self, argv: Any = None) -> None:
        """Tell every page where its scripts are."""
        super().initialize(argv)
        addresses = [url_path_join(self.base_url, "advisor", one.name) for one in self.scripts]

        def page_config(found: dict[str, Any], **_: Any) -> dict[str, Any]:
            found["advisorFront"], found["advisorVega"] = addresses
            return found

        self.voila_configuration.page_config_hook = page_config

    def stop(self) -> None:
        """End everything that was started."""
        shutil.rmtree(self.connection_dir, ignore_errors=True)
        for kernel_id in list(self.kernel_manager.list_kernel_ids()):
            with contextlib.suppress(tornado.web.HTTPError):  # it has just ended by itself
                run_sync(self.kernel_manager.shutdown_kernel)(kernel_id, now=True)
        if self.nursery:
            self.nursery.close()

    @property
    def link(self) -> str:
        """The address to open, with the token that lets its reader in."""
        host = "127.0.0.1" if self.ip in ("", "0.0.0.0", "::") else self.ip  # noqa: S104 - compared, not bound
        host = f"[{host}]" if ":" in host else host
        query = f"?token={quote(self.token)}" if self.token else ""
        return f"http://{host}:{self.port}{self.base_url}{query}"

    def listen(self) -> None:
        """Find a port, say where, open the browser, run."""
        loop = tornado.ioloop.IOLoop.current()
        loop.call_later(0, self._announce)
        super().listen()

    def _announce(self) -> None:
        print(f"Advisor is at {self.link}", flush=True)
        if self.ip not in ("127.0.0.1", "localhost", "::1") and not self.token:
            print("It is open to everybody who reaches this machine: give --token to ask visitors for one.", flush=True)
        print("Stop it with Ctrl+C.", flush=True)

    def launch_browser(self) -> None:
        """Open the link. Voila writes a file and opens that, which a sandboxed browser cannot read."""

        def open_link() -> None:
            try:
                webbrowser.open(self.link)
            except webbrowser.Error:
                self.log.info("no browser here")

        threading.Thread(target=open_link, daemon=True).start()
