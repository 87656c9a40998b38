"""What storage looks up: failure rates by card, spot interruptions, and the words a location may be given in."""

from __future__ import annotations

import functools

from advisor.catalog import CatalogError, constant, constant_range, nearest, table
from advisor.units import Q, Quantity, unit

#: Machines of the failure statistics have eight cards; theirs is a rate of machines.
GPUS_OF_COUNTED_NODES = Q(8, unit("GPU / node"))

spread = constant_range

LOCATIONS = {
    "local": "local on-premises onprem office laptop home workstation own source 本地 自有机房 办公室 机房",
    "object": "object s3 oss cos obs tos gcs blob us3 bucket cloud 对象存储 云上 桶",
    "node": "node machine instance nvme disk cache cached 训练机 本机 本地盘",
    "other_region": "other_region region another_region other-region remote_region cross-region 跨区域 异地 其他地域 跨地域",
    "other_cloud": "other_cloud another_cloud other-cloud multi-cloud cross-cloud hybrid 跨云 其他云 混合云",
}


def read_location(words: str, provider: str | None, providers: tuple[str, ...], regions: tuple[str, ...] = ()) -> str:
    """Where data lie, as one of LOCATIONS, from the user's words.

    A provider's name is "object" when it is the training provider and "other_cloud" when not; a region of the catalog is
    "other_region". Raises CatalogError for words that are none of these.
    """
    text = words.strip().lower().replace(" ", "_")
    for kind, names in LOCATIONS.items():
        if text == kind or text in names.split():
            return kind
    name = source_provider(words, providers)
    if name is not None:
        same = provider is None or name.split()[0].lower() == provider.split()[0].lower()
        return "object" if same else "other_cloud"
    if text in {region.lower() for region in regions}:
        return "other_region"
    near = nearest(words, [*LOCATIONS, *providers])
    hint = f"; the nearest known is {near!r}" if near else ""
    raise CatalogError(f"data.location must be one of {', '.join(LOCATIONS)} or a cloud's name, but was given {words!r}{hint}.")


def source_provider(words: str, providers: tuple[str, ...]) -> str | None:
    """The cloud that a location names, or None where it names none."""
    text = words.strip().lower().replace(" ", "_")
    for name in providers:
        if text and text in (name.lower().replace(" ", "_"), name.lower().split()[0]):
            return name
    return None


@functools.lru_cache(maxsize=256)
def failure_rates(gpu: str) -> tuple[Quantity, Quantity, Quantity, tuple[str, str]]:
    """(low, expected, high) faults per GPU and hour of a card that stop a job, and the basis in words (en, zh).

    From the reliability catalog: the clusters of this card's generation, or all of them where it has none. One study of one
    cluster says little about the next one, so the interval always covers the planning range.
    """
    rows = [row for row in table("reliability.csv") if row["failures_per_node"]]
    planning = next(row for row in rows if row["category"] == "planning default")
    word = gpu.split()[0].lower() if gpu.strip() else ""
    own = [row for row in rows if word and row["category"] != "planning default" and row["gpu"].lower().startswith(word)]
    values = sorted(float(row["failures_per_node"].split()[0]) for row in own)
    low, high = float(planning["low"]), float(planning["high"])
    if values:
        middle = (
            values[len(values) // 2] if len(values) % 2 else (values[len(values) // 2 - 1] * values[len(values) // 2]) ** 0.5
        )
        low, high = min(low, values[0]), max(values[-1], 2 * middle)
        count, card = len(values), own[0]["gpu"]
        basis = (f"{count} published cluster{'s' if count > 1 else ''} of {card}", f"{count} 个公开的 {card} 集群")
    else:
        middle = float(planning["value"])
        basis = ("planning value over all published clusters", "所有公开集群的规划值")
    rate = "1 / node / day"
    return (*(_per_gpu(Q(value, unit(rate))) for value in (low, middle, high)), basis)


def _per_gpu(rate: Quantity) -> Quantity:
    return (rate / GPUS_OF_COUNTED_NODES).to(unit("1 / GPU / h"))


def spot_notice(provider: str | None) -> Quantity:
    """Warning time before a spot machine is taken."""
    word = (provider or "other").split()[0].lower()
    known = {"aws": "aws", "gcp": "gcp", "google": "gcp", "azure": "azure", "alibaba": "alibaba"}
    return constant(f"storage.spot_notice_{known.get(word, 'other')}")
