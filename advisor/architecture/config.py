"""Reads the keys of a Hugging Face config.json: old and new names, the defaults of its model type, and refuses what no model
can have.

Keys that a file leaves out have the value its model type's configuration class gives them; `data/model_type_defaults.csv` holds
those values (transformers 5.24.0). Old names are tried beside the new ones, whatever the model type.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from advisor.architecture.records import ArchitectureError
from advisor.catalog.tables import table

#: Names that one thing has in configuration files, newest first.
ALIASES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "model_dim"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"),
    "num_key_value_heads": (
        "num_key_value_heads",
        "num_kv_heads",
        "n_head_kv",
        "n_kv_heads",
        "multi_query_group_num",
        "num_key_value_groups",
    ),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim", "d_kv"),
    "intermediate_size": ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff", "dim_ff", "inner_hidden_size"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "max_position_embeddings": (
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "max_sequence_length",
        "seq_length",
        "model_max_length",
        "n_ctx",
    ),
    "num_experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"),
    "num_experts_per_tok": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "moe_k",
        "moe_topk",
        "top_k_experts",
        "moe_top_k",
        "num_selected_experts",
    ),
    "moe_intermediate_size": ("moe_intermediate_size", "expert_ffn_hidden_size"),
    "num_shared_experts": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"),
    "hidden_act": ("hidden_act", "hidden_activation", "activation_function", "activation", "mlp_hidden_act"),
}

#: The largest value any of these keys has a meaning for; a file beyond it is damaged or hostile.
LIMITS = {"num_hidden_layers": 10_000, "num_experts": 100_000, "vocab_size": 100_000_000, "max_position_embeddings": 10**12}
LARGEST = 10_000_000


@functools.cache
def _defaults() -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = {}
    for row in table("model_type_defaults.csv"):
        result.setdefault(row["model_type"], {})[row["key"]] = json.loads(row["value"])
    return result


def model_types() -> tuple[str, ...]:
    """The model types whose defaults are known."""
    return tuple(_defaults())


class Config:
    """One text model's configuration: `integer`, `flag` and `text` read a key by its newest name.

    assumptions: sentences collected while reading; they end in `Architecture.assumptions`.
    """

    def __init__(self, data: dict[str, Any], model_type: str, name: str = "") -> None:
        # A text model inside a multimodal one may have other defaults than the family it belongs to.
        written = _defaults().get(str(data.get("model_type")), {})
        self.data = data
        self.model_type = model_type
        self.name = name
        self.defaults = written if "hidden_size" in written else _defaults().get(model_type, {})
        self.assumptions: list[str] = []

    def given(self, key: str) -> Any:
        """The value the file itself gives, by any of the key's names; None when absent or null."""
        for alias in ALIASES.get(key, (key,)):
            if self.data.get(alias) is not None:
                return self.data[alias]
        return None

    def value(self, key: str, default: Any = None) -> Any:
        """What the file gives, else what the model type's class gives, else `default`."""
        value = self.given(key)
        if value is not None:
            return value
        for alias in ALIASES.get(key, (key,)):
            # A key that is there and null overrides the class's default, as it does in the class.
            if alias in self.data:
                return default
        for alias in ALIASES.get(key, (key,)):
            if self.defaults.get(alias) is not None:
                return self.defaults[alias]
        return default

    def integer(self, key: str, default: int | None = None, minimum: int = 1) -> int:
        """A whole number. Raises ArchitectureError when it is missing without a default, not whole, or out of any range."""
        value = self.value(key, default)
        if value is None:
            raise ArchitectureError(f"The model's config needs {key!r} (a whole number), but has none.")
        if isinstance(value, list) and value and all(one == value[0] for one in value):
            # Some files repeat a number for each layer.
            value = value[0]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArchitectureError(f"The model's config needs a whole number for {key!r}, but has {_short(value)}.")
        limit = LIMITS.get(key, LARGEST)
        if not minimum <= value <= limit:
            raise ArchitectureError(f"The model's config needs {key!r} between {minimum} and {limit}, but has {_short(value)}.")
        return value

    def optional(self, key: str, minimum: int = 1) -> int | None:
        """A whole number, or None when neither the file nor the class gives one."""
        return None if self.value(key) is None else self.integer(key, minimum=minimum)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false. Raises ArchitectureError for anything else."""
        value = self.value(key, default)
        if not isinstance(value, (bool, int)):
            raise ArchitectureError(f"The model's config needs true or false for {key!r}, but has {_short(value)}.")
        return bool(value)

    def text(self, key: str, default: str = "") -> str:
        """A word. Raises ArchitectureError for anything else."""
        value = self.value(key, default)
        if not isinstance(value, str):
            raise ArchitectureError(f"The model's config needs a text for {key!r}, but has {_short(value)}.")
        return value

    def sequence(self, key: str) -> list[Any] | None:
        """A list, or None when absent. Raises ArchitectureError for anything else."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise ArchitectureError(f"The model's config needs a list for {key!r}, but has {_short(value)}.")
        return value


def _short(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
