"""Serving the apps: Voila with the settings its command line cannot give.

    serve(port=8866)        # prints the link, opens the browser, runs until interrupted

What a visitor gets: pages that load nothing from other hosts, one calculation process of their own, a friendly page when all
places are taken, and nothing of this machine: no source, no files, no code execution. As an extension of JupyterLab Voila is
different: there the visitor has the machine, by design of JupyterLab.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

# jsonschema's optional IRI checker builds some 35 parsers at import, 1 to 2 s; nothing here uses IRIs.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from advisor.ui.style import TEMPLATE_ROOT  # noqa: E402 - after the line above, which is what makes the start fast

PACKAGE = TEMPLATE_ROOT.parent
#: The word that asks for a token made up at the start.
MADE_UP = "auto"


def notebook_folder() -> Path:
    """Where the notebooks lie: in the installed package, or beside it in a checkout. Raises ValueError when nowhere."""
    for folder in (PACKAGE / "notebooks", PACKAGE.parent / "notebooks"):
        if any(folder.glob("*.ipynb")):
            return folder
    raise ValueError("The notebooks are missing from this installation: install the package again.")


def add_jupyter_path(folder: Path = TEMPLATE_ROOT) -> None:
    """Let Voila find the template of this package first, whether or not an installation put a copy into share/jupyter."""
    known = [part for part in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if part]
    if str(folder) not in known:
        os.environ["JUPYTER_PATH"] = os.pathsep.join([str(folder), *known])


def serve(
    host: str = "127.0.0.1",
    port: int = 8866,
    token: str = "",
    max_sessions: int = 20,
    preheat: bool = False,
    base_url: str = "/",
    open_browser: bool = True,
    folder: Path | None = None,
) -> None:
    """Serve the apps until interrupted.

    host: the address to listen on; anything but this machine without a token is said to be open.
    port: the first to try; the next free one is taken and printed.
    token: what visitors must bring; "auto" makes one. Empty: none.
    max_sessions: visitors at once; each has a process of about 100 MB.
    preheat: keep one started process per app: pages are there in half the time, for 100 MB an app.
    base_url: the path prefix behind a proxy.
    folder: notebooks to serve instead of the package's own.
    Raises ValueError with one sentence for options that cannot be.
    """
    if not 0 < port < 65536:
        raise ValueError(f"The port must be between 1 and 65535, but was given {port}.")
    if max_sessions < 1:
        raise ValueError(f"The number of visitors at once must be at least 1, but was given {max_sessions}.")
    if any(sign.isspace() or sign in "?#" for sign in base_url):
        raise ValueError(f"The base URL must be a path such as /advisor/, but was given {base_url!r}.")
    add_jupyter_path()
    from advisor.serve.server import AdvisorVoila, settings

    app = AdvisorVoila(
        config=settings(
            host=host,
            port=port,
            token=token if token != MADE_UP else secrets.token_urlsafe(24),
            max_sessions=max_sessions,
            preheat=preheat,
            base_url="/" + base_url.strip("/") + "/" if base_url.strip("/") else "/",
            open_browser=open_browser,
            folder=folder or notebook_folder(),
        )
    )
    app.initialize([])
    app.start()
