"""`find_architecture`: a catalog name in any spelling, a bare size, or a config, whichever was given."""

from __future__ import annotations

import csv
import difflib
import functools
import json
import re
from pathlib import Path
from typing import Any

from advisor.architecture.read import architecture_from_config
from advisor.architecture.records import Architecture, ArchitectureError
from advisor.architecture.sizes import bare_size, typical_architecture

#: Common short names that are neither a catalog name nor a repository's.
NICKNAMES = {"8x7b": "Mixtral 8x7B", "8x22b": "Mixtral 8x22B"}
SUFFIXES = ("-instruct", "-chat", "-base", "-hf", "-it", "-pt", "-text", "-fp8", "-bf16", "-awq", "-gptq", "-4bit")


@functools.lru_cache(maxsize=1)
def _configs() -> dict[str, tuple[str, str]]:
    """By plain spelling: the catalog name and its config as JSON text."""
    here = Path(__file__).resolve()
    result: dict[str, tuple[str, str]] = {}
    for folder in (here.parents[2] / "data", here.parents[1] / "data"):
        if (folder / "model_configs.csv").exists():
            with (folder / "model_configs.csv").open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            for row in rows:
                result[plain(row["name"])] = (row["name"], row["config"])
            for row in rows:
                for spelling in (row["hf_id"], row["hf_id"].rpartition("/")[2]):
                    if spelling:
                        result.setdefault(plain(spelling), (row["name"], row["config"]))
                        result.setdefault(_stem(spelling), (row["name"], row["config"]))
            for row in rows:
                result.setdefault(_stem(row["name"]), (row["name"], row["config"]))
            break
    return result


def plain(name: str) -> str:
    """A name without case, spaces and punctuation: "Llama-3.1-8B" and "llama 3.1 8b" are one."""
    return re.sub(r"[^a-z0-9.]+", "", name.lower())


def _stem(name: str) -> str:
    stem = re.sub(r"[ _]+", "-", name.lower().strip())
    for _ in range(2):
        for suffix in SUFFIXES:
            stem = stem.removesuffix(suffix)
    return plain(stem)


@functools.lru_cache(maxsize=512)
def catalog_architecture(name: str) -> Architecture:
    """The architecture of a catalog model, by its name or Hugging Face id in any spelling.

    Raises ArchitectureError with the nearest known names when there is no such model.
    """
    known = _configs()
    for spelling in (plain(name), plain(name.rpartition("/")[2]), _stem(name), _stem(name.rpartition("/")[2])):
        if spelling in known:
            title, config = known[spelling]
            return architecture_from_config(json.loads(config), title)
    near = difflib.get_close_matches(plain(name), known, n=3, cutoff=0.5)
    hint = f"; near it are {', '.join(dict.fromkeys(known[one][0] for one in near))}" if near else ""
    raise ArchitectureError(f"There is no model {name!r} in the catalog{hint}.")


def find_architecture(model: str | dict[str, Any]) -> Architecture:
    """The architecture of a catalog name in any spelling, a bare size ("13B", "350M", "8x7B"), or a config.json object.

    Raises ArchitectureError (a ValueError, one sentence) for anything else.
    """
    if isinstance(model, dict):
        return architecture_from_config(model)
    if not isinstance(model, str) or not model.strip():
        raise ArchitectureError(
            f"A model is a catalog name, a size such as '13B' or a config.json object, but was given {type(model).__name__}."
            if not isinstance(model, str)
            else "A model is a catalog name, a size such as '13B' or a config.json object, but the text given is empty."
        )
    nickname = NICKNAMES.get(plain(model))
    if nickname:
        return catalog_architecture(nickname)
    size = bare_size(model)
    return catalog_architecture(model.strip()) if size is None else typical_architecture(size, model.strip())
