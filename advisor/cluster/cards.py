"""Which cards a search considers, what they usually cost and how they are usually joined."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from statistics import median

import numpy as np

from advisor import catalog
from advisor.catalog import GPU, CatalogError
from advisor.network import Fabric, fabric_of, stack
from advisor.throughput import Accelerator, accelerator_of
from advisor.training import Training
from advisor.units import Q, Quantity, unit

Text = dict[str, str]
USD = unit("USD / GPU / h")


@dataclass(frozen=True)
class Cards:
    """Cards of one search as columns: arrays have shape (cards, 1), so that they broadcast against layouts.

    skipped: cards left out, each with the reason in both languages.
    """

    gpus: tuple[GPU, ...]
    accelerators: Accelerator
    fabric: Fabric
    capacity: Quantity
    prices: Quantity | None
    skipped: tuple[tuple[str, Text], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Catalog names in order."""
        return tuple(gpu.name for gpu in self.gpus)


@functools.lru_cache(maxsize=32)
def _known(names: tuple[str, ...], training: Training) -> tuple[tuple[GPU, ...], Accelerator, Quantity, tuple, tuple[int, ...]]:
    gpus, rates, skipped, kept = [], [], [], []
    for position, gpu in enumerate([catalog.gpu(name) for name in names] if names else catalog.gpus()):
        try:
            rates.append(accelerator_of(gpu, training))
        except CatalogError as error:
            skipped.append((gpu.name, {"en": str(error), "zh": f"目录中缺少 {gpu.name} 在该精度下的算力或带宽，未参与比较。"}))
            continue
        gpus.append(gpu)
        kept.append(position)
    if not gpus:
        raise CatalogError(
            "No card of the catalog can be estimated for this job: " + "; ".join(text["en"] for _, text in skipped)
        )

    def column(name: str) -> Quantity:
        units = getattr(rates[0], name).units
        return Q(np.array([[getattr(rate, name).m_as(units)] for rate in rates]), units)

    fields = ("matmul_rate", "attention_rate", "peak", "memory_bandwidth", "pcie_bandwidth")
    capacity = Q(np.array([[gpu.capacity.m_as("GiB / GPU")] for gpu in gpus]), unit("GiB / GPU"))
    return tuple(gpus), Accelerator(**{name: column(name) for name in fields}), capacity, tuple(skipped), tuple(kept)


@functools.lru_cache(maxsize=64)
def _fabrics(names: tuple[str, ...], scale_out: str | None, gpus_per_node: int) -> Fabric:
    gpus = [catalog.gpu(name) for name in names]
    each = [fabric_of(gpu, scale_out or usual_scale_out(gpu), gpus_per_node) for gpu in gpus]
    return stack(each, np.arange(len(each))[:, None])


def cards_of(
    names: tuple[str, ...], training: Training, scale_out: str | None, gpus_per_node: int, prices: Quantity | None
) -> Cards:
    """The named cards (all of the catalog without names) as columns; those the catalog knows too little of are left out."""
    gpus, accelerators, capacity, skipped, kept = _known(names, training)
    fabric = _fabrics(tuple(gpu.name for gpu in gpus), scale_out, gpus_per_node)
    if prices is not None:
        prices = Q(np.atleast_1d(prices.magnitude)[list(kept)][:, None] * 1.0, prices.units)
    return Cards(gpus, accelerators, fabric, capacity, prices, skipped)


def usual_scale_out(gpu: GPU) -> str:
    """The fabric such cards are usually joined by: their generation's InfiniBand with NVLink, RoCE or Ethernet without."""
    if gpu.segment == "consumer":
        return "Ethernet 25G TCP"
    if gpu.scale_up.startswith("PCIe"):
        return "RoCEv2 100G" if gpu.segment == "datacenter" else "Ethernet 100G TCP"
    if "NVL72" in gpu.scale_up:
        return "NVL72 racks joined by 400G per GPU (GB200/GB300)"
    return "InfiniBand NDR 4x" if gpu.launch_year >= 2022 else "InfiniBand HDR 4x"


@functools.cache
def usual_price(name: str) -> Quantity | None:
    """Median on-demand price per GPU and hour over the catalog's instances in USD, or None where nobody lists the card."""
    found = [
        (instance.on_demand / Q(instance.gpus, unit("GPU"))).m_as(USD)
        for instance in catalog.instances()
        if instance.gpu == name and instance.on_demand is not None and instance.on_demand.check(unit("USD / h"))
    ]
    return Q(median(found), USD) if found else None


@functools.cache
def usual_prices(names: tuple[str, ...]) -> Quantity:
    """`usual_price` of each named card (of the whole catalog without names), infinite where unknown."""
    every = names or tuple(gpu.name for gpu in catalog.gpus())
    known = [usual_price(catalog.gpu(name).name) for name in every]
    return Q(np.array([np.inf if price is None else price.m_as(USD) for price in known]), USD)
