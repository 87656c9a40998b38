"""A bare size ("13B") as a typical dense architecture: the standard widths of Llama-like models, with depth and
feed-forward width solved so that the parameters come out at the size asked for."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from advisor.architecture.build import build_common
from advisor.architecture.config import Config
from advisor.architecture.decoder import finish, start
from advisor.architecture.families import LLAMA
from advisor.architecture.records import Architecture, ArchitectureError

SIZE = re.compile(r"(?:about|~)?\s*(\d+(?:\.\d+)?)\s*[-_ ]?\s*([mbt])(?:illion)?(?:\s*param(?:eter)?s?)?", re.IGNORECASE)
SMALLEST, LARGEST = 0.05e9, 2000e9

#: Parameters and hidden size of published dense models, between which a width is interpolated: Pythia 70M and 160M
#: (arXiv 2304.01373, table 1), GPT-3 (arXiv 2005.14165, table 2.1), Llama 1 and 2 (arXiv 2302.13971, table 2; 2307.09288),
#: Llama 3.1 405B (arXiv 2407.21783, table 3).
WIDTHS = (
    (0.05e9, 512), (0.125e9, 768), (0.35e9, 1024), (1.3e9, 2048), (2.7e9, 2560), (6.7e9, 4096), (13e9, 5120),
    (32.5e9, 6656), (65e9, 8192), (175e9, 12288), (405e9, 16384), (2000e9, 28672),
)  # fmt: skip
VOCABULARY = 32_000
#: Grouped queries and an untied head are the rule only above these sizes (Llama 2 7B to 13B against 70B; Llama 3.2 1B and 3B).
GROUPED_ABOVE, UNTIED_ABOVE = 33e9, 2e9


def bare_size(text: str) -> float | None:
    """Parameters in a text that is nothing but a size ("13B", "350m", "1.5 B", "1T"), else None."""
    match = SIZE.fullmatch(text.strip())
    return None if match is None else float(match[1]) * {"m": 1e6, "b": 1e9, "t": 1e12}[match[2].lower()]


def typical_architecture(parameters: float, name: str = "") -> Architecture:
    """A dense Llama-like architecture of about `parameters` (within 2 %).

    Raises ArchitectureError outside 0.05 to 2000 billion.
    """
    if not SMALLEST <= parameters <= LARGEST:
        raise ArchitectureError(
            f"A bare model size must be between 0.05B and 2000B, but was given {name or f'{parameters / 1e9:g}B'}."
        )
    hidden = _width(parameters)
    head_dim = 128 if hidden >= 2048 else 64
    heads = hidden // head_dim
    kv_heads = 8 if parameters > GROUPED_ABOVE else heads
    tied = parameters <= UNTIED_ABOVE
    embeddings = VOCABULARY * hidden * (1 if tied else 2) + hidden
    attention = 2 * hidden * hidden + 2 * hidden * kv_heads * head_dim
    ratio = 3.5 if kv_heads < heads else 8 / 3
    layers = max(round((parameters - embeddings) / (attention + 3 * ratio * hidden * hidden)), 1)
    if layers > 16:
        layers = 4 * round(layers / 4)
    step = 32 if hidden >= 2048 else 8
    exact = ((parameters - embeddings) / layers - attention - 2 * hidden) / (3 * hidden)
    intermediate = max(step * round(exact / step), step)
    title = name or f"{parameters / 1e9:g}B"
    config = Config(
        {
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": head_dim,
            "intermediate_size": intermediate,
            "vocab_size": VOCABULARY,
            "tie_word_embeddings": tied,
            "max_position_embeddings": 4096,
        },
        "llama",
        title,
    )
    decoder = start(config, LLAMA)
    build_common(decoder)
    return finish(
        decoder,
        (
            f"Only the size {title} was given: a typical dense Llama-like architecture of it was assumed ({layers} layers, "
            f"hidden size {hidden}, {heads} heads, {kv_heads} key-value heads, vocabulary {VOCABULARY}). "
            "Name the model or give its config.json for exact numbers.",
        ),
    )


def _width(parameters: float) -> int:
    (small, low), (large, high) = next((a, b) for a, b in pairwise(WIDTHS) if parameters <= b[0])
    share = math.log(parameters / small) / math.log(large / small)
    width = low * (high / low) ** share
    step = 64 if width < 1024 else 256 if width < 2048 else 512 if width < 4000 else 1024
    return max(step * round(width / step), 512)
