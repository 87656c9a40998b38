"""The command line: `advisor` serves the apps; its commands print a plan, a search, a reading, an accuracy table, a kit.

Exit status: 0 when done, 2 with one sentence on standard error for bad input.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

#: Scenario files are small; anything larger is not one.
LARGEST_SCENARIO = 1_000_000


def read_scenario(path: str) -> Any:
    """The scenario in a JSON file ("-" is standard input). Raises ValueError with one sentence."""
    from advisor.scenario import Scenario

    try:
        if path == "-":
            text = sys.stdin.read(LARGEST_SCENARIO + 1)
        else:
            with open(path, encoding="utf-8-sig") as file:
                text = file.read(LARGEST_SCENARIO + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ValueError(f"The scenario file {path} cannot be read: {reason}.") from None
    if len(text) > LARGEST_SCENARIO:
        raise ValueError(f"The scenario file {path} is larger than {LARGEST_SCENARIO // 1000} kB; that is not a scenario.")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"The scenario file {path} is not JSON{place}.") from None
    return Scenario.from_dict(data)


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """No garbage collection while modules and tables load: nearly all of it stays, and looking through it takes a tenth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def plan(arguments: argparse.Namespace) -> None:
    """Print the plan of a scenario."""
    with _nothing_collected():
        from advisor.plan import make_plan

        result = make_plan(read_scenario(arguments.scenario))
    if arguments.json:
        print(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    else:
        print(result.summary(arguments.language))


def search(arguments: argparse.Namespace) -> None:
    """Print the ranked candidates of a scenario."""
    from advisor.plan import search as run

    frame = run(read_scenario(arguments.scenario)).head(arguments.top)
    if arguments.json:
        print(frame.to_json(orient="records", force_ascii=False, indent=2))
    else:
        print(frame.to_string(index=False))


def read(arguments: argparse.Namespace) -> None:
    """Print what each evidence file says; of a run's files, the scenario they make."""
    from advisor.evidence import read_files, to_scenario

    found, unread = read_files(arguments.files)
    reports = [report for _, report in found]
    folder = any(Path(name).is_dir() for name in arguments.files)
    if arguments.scenario:
        imported = to_scenario(reports)
        print(json.dumps(imported.scenario, ensure_ascii=False, indent=2))
        print(imported.summary(arguments.language), file=sys.stderr)
    elif arguments.json:
        shown = [{**({"file": name} if folder else {}), **report.to_dict()} for name, report in found]
        print(json.dumps(shown[0] if len(shown) == 1 else shown, ensure_ascii=False, indent=2))
    else:
        heads = (f"{name}: " if folder else "" for name, _ in found)
        print("\n\n".join(head + report.summary(arguments.language) for head, report in zip(heads, reports, strict=True)))
        if folder:
            with contextlib.suppress(ValueError):  # a folder of measurements makes no scenario
                print(f"\n{to_scenario(reports).summary(arguments.language)}")
    for one in unread:
        print(f"advisor: {one.reason}", file=sys.stderr)


def accuracy(arguments: argparse.Namespace) -> int | None:
    """Print predicted against measured, per source."""
    from advisor.accuracy import main as run

    return run(arguments.rest)


def prices(arguments: argparse.Namespace) -> int | None:
    """Bring newer prices into a file of the user's."""
    from advisor.budget.refresh import main as run

    return run(arguments.rest)


def kit(arguments: argparse.Namespace) -> int | None:
    """Write the launch kit of a plan or scenario."""
    from advisor.handoff import main as run

    return run(arguments.rest)


def report(arguments: argparse.Namespace) -> None:
    """Write a plan as a report: HTML that prints, Markdown, JSON or a workbook."""
    from advisor.plan import make_plan
    from advisor.report import write

    written = write(make_plan(read_scenario(arguments.scenario)), arguments.out, arguments.format, arguments.language)
    if written:
        print(written)


def measure(arguments: argparse.Namespace) -> int | None:
    """Run one real training step here and compare it with the estimate."""
    from advisor.measure import main as run

    return run(arguments.rest)


def verify(arguments: argparse.Namespace) -> int | None:
    """Compare evidence files with what a plan requires."""
    from advisor.verify import main as run

    return run(arguments.rest)


def serve(arguments: argparse.Namespace) -> None:
    """Start the apps and open the browser."""
    from advisor.serve import serve as run

    run(
        host=arguments.host,
        port=arguments.port,
        token=arguments.token,
        max_sessions=arguments.max_sessions,
        preheat=arguments.preheat,
        base_url=arguments.base_url,
        open_browser=not arguments.no_browser,
    )


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    root = argparse.ArgumentParser(prog="advisor", description="What it takes to train a model, and what it costs.")
    add_server_options(root)
    commands = root.add_subparsers(title="commands", dest="command")

    one = commands.add_parser("plan", help=plan.__doc__)
    one.add_argument("scenario", help="a JSON file, or - for standard input")
    one.add_argument("--json", action="store_true", help="print the whole plan as JSON")
    one.add_argument("--language", choices=("en", "zh"), default="en")
    one.set_defaults(run=plan)

    one = commands.add_parser("search", help=search.__doc__)
    one.add_argument("scenario", help="a JSON file, or - for standard input")
    one.add_argument("--json", action="store_true", help="print records as JSON")
    one.add_argument("--top", type=int, default=30, help="how many candidates (default 30)")
    one.set_defaults(run=search)

    one = commands.add_parser("read", help=read.__doc__)
    one.add_argument("files", nargs="+", metavar="FILE", help="files of one run, or its folder")
    one.add_argument("--json", action="store_true", help="print readings as JSON")
    one.add_argument("--scenario", action="store_true", help="print the scenario that the files make, for `advisor plan`")
    one.add_argument("--language", choices=("en", "zh"), default="en")
    one.set_defaults(run=read)

    one = commands.add_parser("report", help=report.__doc__)
    one.add_argument("scenario", help="a JSON file, or - for standard input")
    one.add_argument("--format", choices=("html", "md", "json", "xlsx"), help="default: by the ending of --out, else html")
    one.add_argument("--language", choices=("en", "zh"), default="en")
    one.add_argument("--out", help="file to write, - for standard output (default: named by model and day)")
    one.set_defaults(run=report)

    for name, run in (("accuracy", accuracy), ("prices", prices), ("kit", kit), ("measure", measure), ("verify", verify)):
        one = commands.add_parser(name, help=run.__doc__, add_help=False)
        one.add_argument("rest", nargs=argparse.REMAINDER)
        one.set_defaults(run=run)
    return root


def add_server_options(root: argparse.ArgumentParser) -> None:
    """Options of the server, which is what `advisor` without a command starts."""
    root.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    root.add_argument("--port", type=int, default=8866, help="port (default 8866, or the next free one)")
    root.add_argument("--token", default="", help="ask visitors for this token")
    root.add_argument("--max-sessions", type=int, default=20, help="visitors at once (default 20)")
    root.add_argument("--preheat", action="store_true", help="keep one kernel ready per app: faster first page, more memory")
    root.add_argument("--base-url", default="/", help="path prefix behind a proxy")
    root.add_argument("--no-browser", action="store_true", help="print the link and open nothing")
    root.set_defaults(run=serve)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is returned."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options, extra = parser().parse_known_args(words)
    if extra:
        # argparse's REMAINDER leaves options that stand before the first positional argument over
        if not hasattr(options, "rest"):
            parser().error(f"unrecognized arguments: {' '.join(extra)}")
        options.rest = words[words.index(options.command) + 1 :]
    try:
        status = options.run(options)
    except ValueError as error:
        print(f"advisor: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    return status or 0


if __name__ == "__main__":
    sys.exit(main())
