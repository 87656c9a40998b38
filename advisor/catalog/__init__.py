"""The catalog: every fact and price of `data/` as frozen records of quantities, each with its source and date.

It knows no stage. Tables are read on first use and kept; prices are read as of a date.
"""

from __future__ import annotations

from advisor.catalog.gpus import GPU, gpu, gpus, known_capacity
from advisor.catalog.links import Link, link, links
from advisor.catalog.models import ModelEntry, model, models
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
    "Fact",
    "Link",
    "ModelEntry",
    "Source",
    "constant",
    "constant_range",
    "constant_row",
    "data_folder",
    "fact",
    "facts",
    "gpu",
    "gpus",
    "known_capacity",
    "link",
    "links",
    "model",
    "models",
    "nearest",
    "source",
    "sources",
    "table",
]
