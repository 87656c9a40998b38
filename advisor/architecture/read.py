"""`architecture_from_config`: find the text model in a configuration file, name its family, and build it."""

from __future__ import annotations

from typing import Any

from advisor.architecture.build import build, finish
from advisor.architecture.config import Config, model_types
from advisor.architecture.families import FAMILIES, LLAMA
from advisor.architecture.records import Architecture, ArchitectureError

#: Keys under which multimodal models nest their text model.
NESTED = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config", "talker_config")


def architecture_from_config(config: dict[str, Any], name: str = "") -> Architecture:
    """The architecture a Hugging Face `config.json` describes, exact to the last parameter for known model types.

    Raises ArchitectureError (a ValueError, one sentence) when the file is not an object, lacks hidden_size or the number of
    layers, or holds a value no model can have.
    """
    if not isinstance(config, dict):
        raise ArchitectureError(f"A model's config must be a JSON object, but is {type(config).__name__}.")
    assumptions: list[str] = []
    data = config
    model_type = _model_type(config)
    reader = Config(data, model_type, name)
    for key in ("hidden_size", "num_hidden_layers"):
        if reader.given(key) is None:
            raise ArchitectureError(f"The model's config needs {key!r} (a whole number), but has none.")
    family = FAMILIES.get(model_type)
    if family is None:
        family = LLAMA
        assumptions.append(f"The model type {model_type!r} is not known; it was sized as a Llama-like decoder.")
    return finish(build(reader, family), tuple(assumptions))


def _model_type(data: dict[str, Any]) -> str:
    given = data.get("model_type")
    if isinstance(given, str) and given:
        return given
    names = data.get("architectures")
    first = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    stem = first
    for end in ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "Model"):
        stem = stem.removesuffix(end)
    plain = {one.replace("_", ""): one for one in (*model_types(), *FAMILIES)}
    return plain.get(stem.lower(), stem.lower() or "unknown")
