"""`find_architecture`: a catalog name in any spelling, a bare size, or a config, whichever was given."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import advisor.catalog as catalog
from advisor.architecture.read import architecture_from_config
from advisor.architecture.records import Architecture, ArchitectureError
from advisor.architecture.sizes import bare_size, typical_architecture

#: Common short names that are neither a catalog name nor a repository's.
NICKNAMES = {"8x7b": "Mixtral 8x7B", "8x22b": "Mixtral 8x22B"}
WANTED = "A model is a catalog name, a size such as '13B' or a config.json object"


@functools.cache
def _configs() -> dict[str, tuple[str, str]]:
    """By plain spelling of name and Hugging Face id: the catalog name and its config as JSON text."""
    result: dict[str, tuple[str, str]] = {}
    rows = catalog.table("model_configs.csv")
    for row in rows:
        result[_plain(row["name"])] = (row["name"], row["config"])
    for row in rows:
        for spelling in (row["hf_id"], row["hf_id"].rpartition("/")[2]):
            if spelling:
                result.setdefault(_plain(spelling), (row["name"], row["config"]))
    return result


def _plain(name: str) -> str:
    """A name without case, spaces and punctuation: "Llama-3.1-8B" and "llama 3.1 8b" are one."""
    return re.sub(r"[^a-z0-9.]+", "", name.lower())


@functools.lru_cache(maxsize=512)
def catalog_architecture(name: str) -> Architecture:
    """The architecture of a catalog model, by its name or Hugging Face id in any spelling.

    Raises ArchitectureError with the nearest known name when there is no such model.
    """
    known = _configs()
    plain = _plain(NICKNAMES.get(_plain(name), name))
    if plain not in known:
        try:
            plain = _plain(catalog.model(name).name)
        except catalog.CatalogError as error:
            raise ArchitectureError(str(error)) from None
    if plain not in known:
        raise ArchitectureError(f"The catalog knows the model {name!r}, but not its architecture: give its config.json.")
    title, config = known[plain]
    return architecture_from_config(json.loads(config), title)


def find_architecture(model: str | dict[str, Any]) -> Architecture:
    """The architecture of a catalog name in any spelling, a bare size ("13B", "350M", "8x7B"), or a config.json object.

    Raises ArchitectureError (a ValueError, one sentence) for anything else.
    """
    if isinstance(model, dict):
        return architecture_from_config(model)
    if not isinstance(model, str):
        raise ArchitectureError(f"{WANTED}, but was given {type(model).__name__}.")
    text = model.strip()
    if not text:
        raise ArchitectureError(f"{WANTED}, but the text given is empty.")
    size = bare_size(text)
    return catalog_architecture(text) if size is None else _typical(size, text)


@functools.lru_cache(maxsize=128)
def _typical(parameters: float, name: str) -> Architecture:
    return typical_architecture(parameters, name)
