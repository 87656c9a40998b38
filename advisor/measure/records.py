"""What a measured step is, and why one may be refused."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.units import BytesPerGPU, Record


class MeasureError(ValueError):
    """A step that cannot be measured here. The message is one plain sentence."""


@dataclass(frozen=True, kw_only=True)
class Measured(Record):
    """One measured step beside its estimate.

    device: the card's name, or "CPU". model: what was run; stand_in says whether it is a tiny model of the same family.
    weights .. activations: live bytes by category at the peak; logits and temporaries are among the activations.
    allocated, reserved: of PyTorch's allocator (on a CPU the live bytes, and None). total: what the driver reports as used,
    other processes included; None on a CPU. estimated_*: the same three of this project.
    """

    device: str
    model: str
    stand_in: bool
    method: str
    framework: str
    software: str
    sequence_length: int
    micro_batch_size: int
    activation_recomputation: str
    attention: str
    precision: str
    weights: BytesPerGPU
    gradients: BytesPerGPU
    optimizer_states: BytesPerGPU
    activations: BytesPerGPU
    allocated: BytesPerGPU
    reserved: BytesPerGPU | None
    total: BytesPerGPU | None
    estimated_allocated: BytesPerGPU
    estimated_reserved: BytesPerGPU
    estimated_total: BytesPerGPU
    versions: str
    measured_on: str

    @property
    def ratio(self) -> float:
        """Measured over estimated, of what the card shows where there is a card, else of what PyTorch allocated."""
        if self.total is not None:
            return float((self.total / self.estimated_total).m_as(""))
        return float((self.allocated / self.estimated_allocated).m_as(""))
