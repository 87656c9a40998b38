"""Warm sessions: one process that has everything imported and forks a visitor's kernel off itself.

A kernel started from nothing computes for 3 to 4 s before it can answer, nearly all of it imports, the same for every visitor.
The nursery does them once. A forked session is there in 0.1 s and shares the nursery's memory until it writes to it. Sessions
share nothing else: each is a process of its own, and what one changes no other sees.

On Linux only: Windows has no fork, and macOS's own libraries do not survive one. There sessions start the ordinary way.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

#: The name that a session's process carries.
NAME = "advisor-session"
#: Imported before the first visitor comes; what is missing from an installation is passed by.
WARM = (
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "IPython.core.completer",
    "advisor.ui.vega",
    "advisor.ui.bridge",
    "advisor.ui.app",
    *(f"advisor.charts.{stage}" for stage in ("workload", "memory", "cluster", "storage", "budget", "accuracy")),
)
LARGEST_ORDER = 1_000_000


class Nursery:
    """The server's hold on the nursery: `argv` is what starts a session."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="advisor-"))  # only this user can enter
        self.address = str(self.folder / "nursery")
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.process = subprocess.Popen(  # noqa: S603 - this package
            [sys.executable, "-m", "advisor.serve.nursery", self.address],
            stdin=subprocess.PIPE,
            env=environment,
        )

    @property
    def argv(self) -> list[str]:
        """The command line of a session, with Jupyter's placeholder for its connection file."""
        return [sys.executable, "-I", "-S", str(Path(__file__).with_name("session.py")), self.address, "{connection_file}"]

    def close(self) -> None:
        """End it; its sessions end with it."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()
        for path in (Path(self.address), self.folder):
            with contextlib.suppress(OSError):
                path.unlink() if path != self.folder else path.rmdir()


def warm() -> None:
    """Import what every page needs and fill the caches that a first plan fills."""
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    for name in WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(Exception):  # a warm-up that fails is a slower first answer, which will say what is wrong
        from advisor.plan import make_plan
        from advisor.scenario import Scenario

        make_plan(Scenario.from_dict({"model": "llama-3.1-8b", "method": "lora", "tokens": "200 Mtoken"}))
    with contextlib.suppress(Exception):
        from advisor.ui.text import LANGUAGES, catalog

        for lang in LANGUAGES:
            catalog(lang)
    gc.collect()
    gc.freeze()  # the collector would touch, and so copy, every page of memory in every session


def more() -> Iterator[None]:
    """What makes pages and their language switch faster and can wait until nobody does, in small steps."""
    with contextlib.suppress(Exception):
        from advisor.ui.app import preparations

        yield from preparations()


def run(address: str) -> None:
    """Serve until standard input ends, which it does when the server does, however it ends."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(address)
    os.chmod(address, 0o600)
    door.listen(64)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the server's
    warm()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    steps: Iterator[None] | None = more()
    while True:
        ready, _, _ = select.select([door, sys.stdin], [], [], None if steps is None else 0)
        if not ready:  # nobody is waiting: a little more of what would otherwise be every session's own work
            if next(steps, "done") == "done":
                steps = None
                gc.collect()
                gc.freeze()
            continue
        if sys.stdin in ready:
            return
        wire, _ = door.accept()
        try:
            wire.settimeout(5)
            order = json.loads(_line(wire))
        except (OSError, ValueError):
            wire.close()
            continue
        if os.fork() == 0:
            door.close()
            _become(wire, order)
        wire.close()


def _line(wire: socket.socket) -> bytes:
    content = b""
    while not content.endswith(b"\n"):
        part = wire.recv(65536)
        if not part or len(content) > LARGEST_ORDER:
            raise ValueError("no order")
        content += part
    return content


def _become(wire: socket.socket, order: dict) -> NoReturn:
    """Turn this fork into the kernel of one visitor."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        with contextlib.suppress(Exception):
            ctypes.CDLL(None).prctl(15, NAME.encode(), 0, 0, 0)  # PR_SET_NAME
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.environ.clear()
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        sys.path.insert(0, "")
        wire.settimeout(None)
        wire.sendall(b"+")

        def follow() -> None:
            with contextlib.suppress(OSError):
                wire.recv(1)
            os._exit(0)  # whoever stands for this session has gone

        threading.Thread(target=follow, daemon=True).start()
        from ipykernel.kernelapp import IPKernelApp

        # the kernel ends when its parent does, which is the nursery and not the process that stands for it
        parent = f"--IPKernelApp.parent_handle={os.getppid()}"
        IPKernelApp.launch_instance(["-f", order["connection_file"], parent, f"--IPKernelApp.exec_lines={WIDGETS}", *OPTIONS])
        status = 0
    finally:
        os._exit(status)


#: ipywidgets tells the kernel of itself when it is imported; here it was imported before there was a kernel.
WIDGETS = "import ipywidgets; ipywidgets.register_comm_target()"
#: Of every session: no history file, and a log that says errors only.
OPTIONS = ["--HistoryManager.enabled=False", "--IPKernelApp.log_level=40"]


if __name__ == "__main__":
    run(sys.argv[1])
