"""How a page is made: Voila's way without its waits, and with errors that tell a visitor what to do."""

from __future__ import annotations

import time
from queue import Empty
from typing import Any

import jinja2
import voila.notebook_renderer
from jinja2.bccache import Bucket
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_core.utils import ensure_async
from tornado.log import gen_log as general
from voila.execute import VoilaExecutor
from voila.exporter import VoilaExporter

_FAILED = (
    "This page could not be built. Your plan is kept in its address and in your browser: reload, or go to the start page.\n"
    "页面未能生成。你的方案保存在网址和浏览器里：请刷新，或返回首页。"
)


class Compiled(jinja2.BytecodeCache):
    """Compiled templates, in memory. Each page has an exporter of its own, which compiled all of them anew, for 0.3 s."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """As Jinja's."""
        if bucket.key in self.kept:
            bucket.bytecode_from_string(self.kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """As Jinja's."""
        self.kept[bucket.key] = bucket.bytecode_to_string()


class Exporter(VoilaExporter):
    """Writes a page. Templates are compiled once."""

    compiled = Compiled()

    def _create_environment(self) -> jinja2.Environment:
        found = super()._create_environment()
        found.bytecode_cache = self.compiled
        return found


class Executor(VoilaExecutor):
    """Runs a page's cells. A failure is one sentence for the visitor and the whole story in the server's log."""

    def strip_code_cell_errors(self, cell: Any) -> Any:
        """Voila's own drops the traceback unseen, and tells the visitor which options to start it with."""
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                general.error("a cell failed:\n%s", "\n".join(output["traceback"]))
                output["ename"], output["evalue"], output["traceback"] = "Error", "", [_FAILED]
        return cell


class Client(AsyncKernelClient):
    """Speaks to a page's session while its cells run."""

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Until the session answers. Raises RuntimeError when it ends first or takes more than `timeout` seconds.

        Jupyter's own waits on until nothing has been said for 0.2 s; what runs the cells passes over what is not its own.
        """
        until = time.monotonic() + (timeout or 600)
        while time.monotonic() < until:
            self.kernel_info()
            try:
                reply = await ensure_async(self.shell_channel.get_msg(timeout=1))
                await ensure_async(self.iopub_channel.get_msg(timeout=0.2))  # outputs are heard too
            except Empty:
                if not await ensure_async(self.is_alive()):
                    raise RuntimeError("The session ended before it answered.") from None
                continue
            if reply["msg_type"] == "kernel_info_reply":
                return
        raise RuntimeError("The session did not answer in time.")


# the renderer names its classes; there is no option for them
voila.notebook_renderer.VoilaExecutor = Executor
voila.notebook_renderer.VoilaExporter = Exporter
