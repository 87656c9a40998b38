"""What the server starts as a kernel: asks the nursery for a session that is already warm, and stands for it.

Run by path, isolated and without site-packages, so that it is there in 20 ms. It lives as long as the session: when either
ends, the other does. When there is no nursery it becomes an ordinary kernel.
"""

import contextlib
import json
import os
import signal
import socket
import sys


def main() -> None:
    """session.py SOCKET CONNECTION_FILE"""
    address, connection_file = sys.argv[1:3]
    environment = dict(os.environ)
    try:
        wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        wire.settimeout(20)  # the nursery may still be warming up
        wire.connect(address)
        order = {"connection_file": connection_file, "environment": environment, "folder": os.getcwd()}
        wire.sendall(json.dumps(order).encode() + b"\n")
        if wire.recv(1) != b"+":
            raise OSError("no session")
    except OSError:
        kernel = [sys.executable, "-m", "ipykernel_launcher", "-f", connection_file, *sys.argv[3:]]
        os.execve(sys.executable, kernel, environment)  # noqa: S606 - the interpreter that runs this
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter interrupts a kernel before it ends it
    wire.settimeout(None)
    with contextlib.suppress(OSError):
        wire.recv(1)  # nothing comes but the end


if __name__ == "__main__":
    main()
