"""`advisor prices refresh`: newer prices through gpuhunt (an optional extra) into a file of the user's.

Nothing of the project's own data is touched. The difference is shown before it is taken; rows are appended with their day,
so that a plan of an earlier day still reads the prices of its day. Offline or without gpuhunt it says so and changes nothing.
"""

from __future__ import annotations

import argparse
import datetime
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from advisor import catalog
from advisor.budget.offers import offers
from advisor.budget.quotes import read_quotes, write_quotes
from advisor.budget.records import Quote
from advisor.units import Q, unit

#: gpuhunt's names for providers the catalog knows.
PROVIDERS = {
    "aws": "AWS",
    "azure": "Azure",
    "gcp": "GCP",
    "oci": "OCI",
    "lambdalabs": "Lambda",
    "nebius": "Nebius",
    "runpod": "RunPod",
    "verda": "Verda (ex-DataCrunch)",
    "crusoe": "Crusoe",
    "vastai": "Vast.ai",
}


class RefreshError(ValueError):
    """New prices could not be had. The message is one plain sentence."""


def user_file() -> Path:
    """Where the user's prices lie: $ADVISOR_PRICES, else advisor/prices.csv in the configuration folder."""
    named = os.environ.get("ADVISOR_PRICES")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "advisor" / "prices.csv"


def user_quotes(path: Path | None = None) -> tuple[Quote, ...]:
    """The quotes of the user's file; empty when there is none or it cannot be read."""
    file = path or user_file()
    return read_quotes(file).quotes if file.is_file() else ()


def fetch_items(providers: Sequence[str] | None = None) -> list[Any]:
    """gpuhunt's GPU offers of today. Raises RefreshError when it is not installed or cannot reach its source."""
    try:
        import gpuhunt
    except ImportError:
        raise RefreshError(
            "gpuhunt is not installed: install the extra with `pip install advisor[prices]`, then try again."
        ) from None
    # Its own account of a failure is a page long: one sentence of ours stands for it.
    logging.getLogger("gpuhunt").setLevel(logging.CRITICAL)
    try:
        source = gpuhunt.Catalog(balance_resources=False)
        return list(source.query(provider=list(providers) if providers else None, min_gpu_count=1))
    except Exception as error:  # any failure of the network or of the other library ends in one sentence
        raise RefreshError(
            f"New prices could not be had ({type(error).__name__}): are you offline? Nothing was changed."
        ) from error


def quotes_of(items: Iterable[Any], day: str) -> tuple[tuple[Quote, ...], int]:
    """gpuhunt's items as quotes of `day`, the cheapest region of each machine first kept; and how many were left out.

    Left out: cards the catalog does not know by name and memory, and items without a price. The machine's own row in the
    catalog tells SXM from PCIe cards, which gpuhunt's names do not.
    """
    known = {(offer.provider, offer.instance): offer.gpu for offer in offers(day)}
    best: dict[tuple, Quote] = {}
    left_out = 0
    for item in items:
        provider = PROVIDERS.get(item.provider, item.provider)
        card = known.get((provider, item.instance_name)) or _card(item.gpu_name, item.gpu_memory)
        if card is None or not item.price or item.price <= 0:
            left_out += 1
            continue
        quote = Quote(
            provider=provider,
            region=item.location,
            instance=item.instance_name,
            gpu=card,
            gpus=int(item.gpu_count),
            per="instance",
            mode="spot" if item.spot else "on_demand",
            price=Q(float(item.price), unit("USD / h")),
            as_of=day,
            note="gpuhunt",
            origin="refresh",
        )
        key = _key(quote)
        if key not in best or quote.price < best[key].price:
            best[key] = quote
    return tuple(best.values()), left_out


def _card(name: str | None, memory: float | None) -> str | None:
    """The catalog card of a short name and its memory in GB, or None."""
    if not name:
        return None
    for spelling in (f"{name} {memory:.0f}GB" if memory else name, name):
        try:
            card = catalog.gpu(spelling)
        except catalog.CatalogError:
            continue
        if memory is None or abs(card.memory.m_as("GB") - memory) <= 0.1 * memory:
            return card.name
    return None


def _key(quote: Quote) -> tuple:
    return (quote.provider, quote.instance, quote.gpu, quote.gpus, quote.mode)


def difference(new: Sequence[Quote], day: str, old: Sequence[Quote] = ()) -> list[str]:
    """Lines that say what would change: price before and after by machine and mode, largest change first; new machines last."""
    before: dict[tuple, float] = {}
    for offer in offers(day):
        if offer.currency == "USD":
            before[(offer.provider, offer.instance, offer.gpu, offer.gpus, offer.mode)] = offer.hourly
    for quote in sorted(old, key=lambda one: one.as_of):
        before[_key(quote)] = quote.price.m_as("USD / h")
    changed, added = [], 0
    for quote in new:
        now = quote.price.m_as("USD / h")
        was = before.get(_key(quote))
        if was is None:
            added += 1
        elif abs(now / was - 1) > 0.005:
            changed.append(
                (
                    abs(now / was - 1),
                    f"{quote.provider} {quote.instance} {quote.mode}: {was:.4g} -> {now:.4g} USD/h ({now / was - 1:+.0%})",
                )
            )
    lines = [text for _, text in sorted(changed, reverse=True)]
    return [*lines, f"{len(changed)} changed, {added} new, {len(new) - len(changed) - added} as before."]


def refresh(
    path: Path,
    *,
    providers: Sequence[str] | None = None,
    accept: Callable[[], bool],
    day: str | None = None,
    fetch: Callable[[Sequence[str] | None], list[Any]] = fetch_items,
    show: Callable[[str], None] = print,
) -> bool:
    """Fetch, show the difference, and append to `path` if `accept()` says so. Gives back whether it was written."""
    day = day or datetime.date.today().isoformat()
    new, left_out = quotes_of(fetch(providers), day)
    if not new:
        raise RefreshError("The source gave no price of a card in the catalog: nothing was changed.")
    old = user_quotes(path)
    lines = difference(new, day, old)
    for line in lines[:-1][:40]:
        show(line)
    if len(lines) > 41:
        show(f"... and {len(lines) - 41} more.")
    show(lines[-1] + (f" {left_out} left out (card not in the catalog)." if left_out else ""))
    if not accept():
        show("Nothing was written.")
        return False
    kept = [quote for quote in old if not (quote.as_of == day and quote.origin == "refresh")]
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(write_quotes([*kept, *new]), encoding="utf-8")
    draft.replace(path)
    show(f"Written to {path}.")
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """`advisor prices refresh [--file F] [--provider P]... [--yes]`. 0: done or declined; 2: one sentence on standard error."""
    parser = argparse.ArgumentParser(prog="advisor prices", description="Bring newer prices into a file of your own.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("refresh", help="newer prices through gpuhunt")
    one.add_argument("--file", type=Path, default=user_file(), help="your price file (default: %(default)s)")
    one.add_argument("--provider", action="append", choices=sorted(PROVIDERS), help="only this provider (may be repeated)")
    one.add_argument("--yes", action="store_true", help="take the prices without asking")
    given = parser.parse_args(argv)

    def accept() -> bool:
        if given.yes:
            return True
        if not sys.stdin.isatty():
            print("Not asked on a terminal: run again with --yes to take these prices.")
            return False
        return input("Take these prices? [y/N] ").strip().lower() in ("y", "yes")

    try:
        refresh(given.file, providers=given.provider, accept=accept)
    except (RefreshError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0
