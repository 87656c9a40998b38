"""Collects a model's matrices and vectors while its layers are described, and the blocks most decoders are built from.

Shapes are those of the modelling code in transformers 5.24.0; `in` and `out` are the features a token enters and leaves with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.architecture.records import Matrix


@dataclass(frozen=True)
class Attention:
    """Sizes of one kind of attention layer.

    query_size is heads x head_dim; key_size and value_size are key-value heads x their head_dim; output_size is what the
    output projection reads (heads x value head_dim).
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int

    @property
    def query_size(self) -> int:
        return self.heads * self.head_dim

    @property
    def key_size(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def value_size(self) -> int:
        return self.kv_heads * self.value_dim

    @property
    def output_size(self) -> int:
        return self.heads * self.value_dim


class Parts:
    """The matrices and the number of other parameters so far.

    fused_experts: whether PEFT places adapters on this model type's fused experts and router ("all linear layers"), and then
        leaves out dense and shared MLPs whose projections have the same names.
    """

    def __init__(self, fused_experts: bool = False) -> None:
        self.fused_experts = fused_experts
        self.other = 0
        self._matrices: dict[tuple, Matrix] = {}

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        return tuple(self._matrices.values())

    def add(
        self,
        name: str,
        block: str,
        inputs: int,
        outputs: int,
        *,
        bias: bool = False,
        layers: int = 1,
        copies: int = 1,
        active: int | None = None,
        linear: bool = True,
        tied: bool = False,
        rank: int | None = None,
    ) -> None:
        """Add a matrix to `layers` layers; one that is there already in other layers is counted on."""
        if min(inputs, outputs, layers, copies) <= 0:
            return
        if rank is None:
            named = self.fused_experts and name in ("gate_proj", "up_proj", "down_proj")
            rank = int(linear and block not in ("embedding", "head") and not named)
        matrix = Matrix(
            name=name,
            block=block,
            in_features=inputs,
            out_features=outputs,
            bias=bias,
            layers=layers,
            copies=copies,
            active=copies if active is None else min(active, copies),
            linear=linear,
            tied=tied,
            all_linear_rank=rank,
        )
        key = (name, block, inputs, outputs, bias, copies, matrix.active, linear, tied)
        known = self._matrices.get(key)
        self._matrices[key] = replace(known, layers=known.layers + layers) if known else matrix

    def vectors(self, size: int, layers: int = 1) -> None:
        """Add `size` parameters to each of `layers` layers (norms, positions, convolutions, state-space vectors)."""
        self.other += size * layers

    def attention(
        self,
        hidden: int,
        sizes: Attention,
        *,
        layers: int,
        fused: str = "",
        out: str = "o_proj",
        bias: bool = False,
        out_bias: bool = False,
        query_factor: int = 1,
        shares_key_value: bool = False,
        block: str = "attention",
    ) -> None:
        """Query, key, value and output projections, split or fused into one matrix of the given name.

        query_factor 2: the query projection also makes an output gate. shares_key_value: the value is the key.
        """
        if fused:
            width = sizes.query_size * query_factor + sizes.key_size + sizes.value_size
            self.add(fused, block, hidden, width, bias=bias, layers=layers)
        else:
            self.add("q_proj", block, hidden, sizes.query_size * query_factor, bias=bias, layers=layers)
            self.add("k_proj", block, hidden, sizes.key_size, bias=bias, layers=layers)
            if not shares_key_value:
                self.add("v_proj", block, hidden, sizes.value_size, bias=bias, layers=layers)
        self.add(out, block, sizes.output_size, hidden, bias=out_bias, layers=layers)

    def latent_attention(
        self,
        hidden: int,
        *,
        layers: int,
        heads: int,
        q_rank: int | None,
        kv_rank: int,
        nope: int,
        rope: int,
        value: int,
        bias: bool = False,
        norms: bool = True,
        copies: int = 1,
    ) -> None:
        """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): low-rank queries, keys and values."""
        add = self.add
        if q_rank is None:
            add("q_proj", "attention", hidden, heads * (nope + rope), layers=layers, copies=copies)
        else:
            add("q_a_proj", "attention", hidden, q_rank, bias=bias, layers=layers, copies=copies)
            self.vectors(q_rank * copies * norms, layers)
            add("q_b_proj", "attention", q_rank, heads * (nope + rope), layers=layers, copies=copies)
        add("kv_a_proj_with_mqa", "attention", hidden, kv_rank + rope, bias=bias, layers=layers, copies=copies)
        self.vectors(kv_rank * copies * norms, layers)
        add("kv_b_proj", "attention", kv_rank, heads * (nope + value), layers=layers, copies=copies)
        add("o_proj", "attention", heads * value, hidden, bias=bias, layers=layers, copies=copies)

    def mlp(
        self,
        hidden: int,
        width: int,
        *,
        layers: int,
        names: Sequence[str] = ("gate_proj", "up_proj", "down_proj"),
        gated: bool = True,
        bias: bool = False,
        block: str = "mlp",
        copies: int = 1,
    ) -> None:
        """Feed-forward layer: three names for gate, up and down; two for a plain one or for gate and up in one matrix."""
        first = width * 2 if gated and len(names) == 2 else width
        for name in names[:-1]:
            self.add(name, block, hidden, first, bias=bias, layers=layers, copies=copies)
        self.add(names[-1], block, width, hidden, bias=bias, layers=layers, copies=copies)

    def experts(
        self,
        hidden: int,
        width: int,
        *,
        layers: int,
        experts: int,
        active: int,
        gated: bool = True,
        bias: bool = False,
        names: Sequence[str] = ("gate_up_proj", "down_proj"),
    ) -> None:
        """Routed experts as transformers 5 holds them: one 3-D tensor for gate and up, one for down."""
        common = {"layers": layers, "copies": experts, "active": active, "bias": bias, "linear": False}
        first = 2 if gated else 1
        fused = self.fused_experts
        self.add(names[0], "expert", hidden, first * width, rank=first if fused else 0, **common)
        self.add(names[1], "expert", width, hidden, rank=int(fused), **common)

    def router(
        self, hidden: int, experts: int, *, layers: int, name: str = "gate", bias: bool = False, linear: bool = False
    ) -> None:
        """The router: in most, a bare parameter that adapters reach only with the experts."""
        rank = int(self.fused_experts or linear)
        self.add(name, "router", hidden, experts, layers=layers, bias=bias, linear=linear, rank=rank)

    def resize(self, block: str, hidden: int, vocab: int) -> None:
        """Give the embedding or the head another width than the layers'."""
        for key, matrix in self._matrices.items():
            if matrix.block == block and vocab in (matrix.in_features, matrix.out_features):
                sizes = (vocab, hidden) if block == "embedding" else (hidden, vocab)
                self._matrices[key] = replace(matrix, in_features=sizes[0], out_features=sizes[1])
