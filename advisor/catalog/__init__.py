"""The catalog: every fact and price of `data/` as frozen records of quantities, each with its source and date.

It knows no stage. Tables are read on first use and kept; prices are read as of a date.
"""

from __future__ import annotations

from advisor.catalog.cards import GPU, gpu, gpus, known_capacity, short_name
from advisor.catalog.experience import (
    CollectiveReading,
    OwnershipFact,
    ReliabilityFact,
    collective_readings,
    ownership,
    reliability,
)
from advisor.catalog.fabrics import Link, link, links
from advisor.catalog.published import ModelEntry, model, models
from advisor.catalog.rentals import Instance, instances
from advisor.catalog.storage import StorageProduct, Switch, storage_products, switches
from advisor.catalog.tables import (
    CatalogError,
    Fact,
    Source,
    constant,
    constant_range,
    constant_row,
    data_folder,
    fact,
    facts,
    nearest,
    source,
    sources,
    table,
)

__all__ = [
    "GPU",
    "CatalogError",
    "CollectiveReading",
    "Fact",
    "Instance",
    "Link",
    "ModelEntry",
    "OwnershipFact",
    "ReliabilityFact",
    "Source",
    "StorageProduct",
    "Switch",
    "collective_readings",
    "constant",
    "constant_range",
    "constant_row",
    "data_folder",
    "fact",
    "facts",
    "gpu",
    "gpus",
    "instances",
    "known_capacity",
    "link",
    "links",
    "model",
    "models",
    "nearest",
    "ownership",
    "reliability",
    "short_name",
    "source",
    "sources",
    "storage_products",
    "switches",
    "table",
]
