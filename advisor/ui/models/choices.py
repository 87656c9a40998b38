"""What the catalog offers to choose from: (label, value) pairs, those most asked for first. Names are not translated."""

from __future__ import annotations

import functools

from advisor import catalog

#: Families in the order people ask for them; the rest follows in the catalog's own order.
_FAMILIES = ("Llama", "Qwen3.5", "Qwen3", "Qwen2.5", "DeepSeek", "Mistral", "Mixtral", "Gemma", "Phi", "GLM", "gpt-oss", "Kimi")


@functools.cache
def models() -> tuple[tuple[str, str], ...]:
    """Every model of the catalog, family by family, the newest and smallest first within one."""
    known = catalog.models()

    def rank(entry: catalog.ModelEntry) -> tuple[int, int]:
        place = next((index for index, family in enumerate(_FAMILIES) if entry.family.startswith(family)), len(_FAMILIES))
        return place, -known.index(entry) if place == 0 else known.index(entry)

    return tuple((entry.name, entry.name) for entry in sorted(known, key=rank))


@functools.cache
def gpus() -> tuple[tuple[str, str], ...]:
    """Every card, with its memory where the name does not say it."""
    found = []
    for one in catalog.gpus():
        size = f"{one.memory.m_as('GB'):g} GB"
        label = one.name if size.replace(" ", "") in one.name.replace(" ", "") else f"{one.name} · {size}"
        found.append((label, one.name))
    return tuple(found)


@functools.cache
def scale_out() -> tuple[tuple[str, str], ...]:
    """Links between nodes."""
    return tuple((one.name, one.name) for one in catalog.links() if one.scope == "scale_out")


@functools.cache
def providers() -> tuple[tuple[str, str], ...]:
    """Whoever rents machines out."""
    return tuple((name, name) for name in sorted({one.provider for one in catalog.instances()}, key=str.lower))


def model_name(value: str) -> str | None:
    """The catalog's own name of a model in any spelling; None for a size or an unknown one."""
    from advisor.architecture import find_architecture

    names = {name for _, name in models()}
    if value in names:
        return value
    try:
        found = find_architecture(value).name
    except ValueError:
        return None
    return found if found in names else None


OF = {"gpus": gpus, "scale_out": scale_out, "providers": providers}
