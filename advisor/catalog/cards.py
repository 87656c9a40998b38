"""Accelerators: what a card can do, how much memory it really offers and how it is linked to its neighbours."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

from advisor.catalog.spelling import resolve
from advisor.catalog.tables import Fact, facts, names
from advisor.units import BandwidthPerGPU, Bytes, BytesPerGPU, FlopRatePerGPU, Power, Q, Record, unit

Confidence = Literal["high", "medium", "low", "unknown"]
FILE = "gpus.csv"


@dataclass(frozen=True, kw_only=True)
class GPU(Record):
    """One accelerator. Rates are dense peaks of the vendor; None where no figure was found.

    memory: the vendor's label. capacity: what `nvidia-smi` (or the vendor's like) reports, the number a need is held against.
    fp32: outside the matrix units. int8 counts operations as FLOP. measured_bf16: best matmul rate anybody published.
    nvlink: all fast links together, both directions, as catalogued; None without such links.
    scale_up: name of the link among all cards of a node; a PCIe link where the card has no other, or only an optional bridge.
    bridge, bridge_gpus: name of the optional bridge and how many cards it can join.
    confidence: of the specification as a whole; `fact("gpus.csv", name, field).confidence` of one figure.
    """

    name: str
    vendor: str
    architecture: str
    compute_capability: str
    form_factor: str
    segment: Literal["datacenter", "workstation", "consumer"]
    memory: Bytes
    memory_type: str
    capacity: BytesPerGPU
    capacity_confidence: Confidence
    memory_bandwidth: BandwidthPerGPU
    fp32: FlopRatePerGPU | None
    tf32: FlopRatePerGPU | None
    fp16: FlopRatePerGPU | None
    bf16: FlopRatePerGPU | None
    fp8: FlopRatePerGPU | None
    fp4: FlopRatePerGPU | None
    int8: FlopRatePerGPU | None
    measured_bf16: FlopRatePerGPU | None
    supports_bf16: bool
    supports_fp8: bool
    supports_fp4: bool
    nvlink: BandwidthPerGPU | None
    nvlink_generation: str
    scale_up: str
    bridge: str | None
    bridge_gpus: int | None
    pcie_generation: int | None
    pcie_lanes: int | None
    power: Power | None
    launch_year: int
    confidence: Confidence
    source: str
    as_of: str
    notes: str
    market_note: str


TEXTS = (
    "vendor",
    "architecture",
    "compute_capability",
    "form_factor",
    "segment",
    "memory_type",
    "nvlink_generation",
    "scale_up",
    "notes",
    "market_note",
)
OWN = ("name", "capacity_confidence", "confidence", "source", "as_of")
NUMBERS = tuple(field for field in GPU.__dataclass_fields__ if field not in (*TEXTS, *OWN))


@functools.cache
def _gpu(name: str) -> GPU:
    known = facts(FILE, name)
    return GPU(
        name=name,
        **{field: known[field].read() if field in known else None for field in NUMBERS},
        **{field: known[field].value if field in known else "" for field in TEXTS},
        capacity_confidence=known["capacity"].confidence,
        confidence=known["vendor"].confidence,
        source=known["vendor"].source,
        as_of=known["vendor"].as_of,
    )


@functools.cache
def gpus() -> tuple[GPU, ...]:
    """All accelerators of the catalog."""
    return tuple(_gpu(name) for name in names(FILE))


def _details(known: dict[str, Fact]) -> str:
    parts = ("form_factor", "memory", "memory_type", "vendor", "architecture")
    text = " ".join(known[part].value for part in parts if part in known)
    return f"{text} sxm" if "SXM" in text else text


@functools.cache
def _all_details() -> dict[str, str]:
    return {name: _details(facts(FILE, name)) for name in names(FILE)}


@functools.lru_cache(maxsize=1024)
def gpu(name: str) -> GPU:
    """The accelerator of that name in any usual spelling: "h100", "A100-40GB", "Tesla T4", "RTX4090", "昇腾910B".

    A short name means the commonest card: "a100" the 80 GB SXM card. Raises CatalogError with the nearest known name.
    """
    return _gpu(resolve("gpus", name, names(FILE), details=_all_details()))


def short_name(name: str) -> str:
    """A card's catalog name as people say it."""
    return name.removeprefix("GeForce ").replace(" (per GPU)", "")


def known_capacity(label: Bytes) -> BytesPerGPU:
    """The capacity of a card of which only the memory label is known: the rule the catalog uses where it has no reading."""
    return Q(0.937 * label.m_as("GB"), unit("GiB / GPU"))  # label in "GB" read as GiB, less what inline ECC takes
