"""Time of one optimizer step of a job on given cards and links, its tokens/s, MFU, HFU and interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.network import CommunicationEstimate, CommunicationInputs, estimate_communication, exposed_communication
from advisor.throughput.formulas import layout_numbers, pick, software_constants, terms
from advisor.throughput.interval import interval_of
from advisor.throughput.records import ThroughputEstimate, ThroughputInputs
from advisor.throughput.work import work_of
from advisor.trail import Trail
from advisor.units import Q, Quantity, unit
from advisor.workload import model_flop_per_token


@dataclass(frozen=True)
class Waiting:
    """Communication of a step, ready to be held against its compute time. Without an estimate (one card) there is none."""

    estimate: CommunicationEstimate | None

    @property
    def total(self) -> Quantity:
        """All communication of one GPU in a step, as if nothing was hidden."""
        return Q(0.0, unit("s")) if self.estimate is None else self.estimate.total_time

    def waited(self, compute: Quantity) -> Quantity:
        """What a step waits for when it computes that long."""
        return Q(0.0, unit("s")) if self.estimate is None else exposed_communication(self.estimate, compute)


def estimate_throughput(inputs: ThroughputInputs, communication: CommunicationEstimate | None = None) -> ThroughputEstimate:
    """Time of one optimizer step of a job on given cards and links, tokens/s, MFU and HFU, with an 80 % interval.

    communication: the estimate for the same inputs, where the caller has it already.
    Fields of `layout`, `accelerator` and `fabric` may be arrays that broadcast; so are the results.
    """
    training, layout = inputs.training, inputs.layout
    w = work_of(inputs.architecture, training)
    if communication is None and inputs.fabric is not None and np.any(np.asarray(layout.gpus) > 1):
        communication = estimate_communication(
            CommunicationInputs(architecture=inputs.architecture, training=training, layout=layout, fabric=inputs.fabric)
        )
    k = software_constants(training.software, training.compile, training.framework, training.attention)
    trail = Trail()
    token = Q(1.0, unit("token"))
    n = layout_numbers(layout)
    card = inputs.accelerator.in_base_units()
    r = terms(trail, w, n, k, card, Waiting(communication), token)
    total, parts = r.step_time, r.parts
    tokens = trail.step(
        "tokens_per_step",
        "data * micro_batch * accumulation * sequence * token",
        token=token,
        **pick(n, "data", "micro_batch", "accumulation", "sequence"),
    )
    rate = trail.step("tokens_per_second", "tokens / step_time", tokens=tokens, step_time=total)
    gpus = layout.gpus * k["per_gpu"]
    each = trail.step("tokens_per_second_per_gpu", "rate / gpus", rate=rate, gpus=gpus)
    model = model_flop_per_token(inputs.architecture, training, layout.sequence_length)
    mfu = trail.step(
        "mfu",
        "flop_per_token * tokens_per_second_per_gpu / peak",
        "chowdhery-2022",
        flop_per_token=model,
        tokens_per_second_per_gpu=each,
        peak=card.peak,
    )
    hfu = trail.step(
        "hfu",
        "accumulation * done / (step_time * peak)",
        "chowdhery-2022",
        accumulation=layout.gradient_accumulation_steps,
        done=r.flop,
        step_time=total,
        peak=card.peak,
    )
    interval = interval_of(inputs.architecture, training)
    low = trail.step("low", "step_time * ratio", "throughput-residuals", step_time=total, ratio=interval.low)
    high = trail.step("high", "step_time * ratio", "throughput-residuals", step_time=total, ratio=interval.high)
    share = trail.step("communication_share", "exposed / step_time", exposed=parts["communication"], step_time=total)
    return ThroughputEstimate(
        step_time=total,
        compute_time=r.compute,
        matmul=parts["matmul"],
        attention=parts["attention"],
        elementwise=parts["elementwise"],
        launch=parts["launch"],
        bubble=parts["bubble"],
        optimizer=parts["optimizer"],
        offload=parts["offload"],
        exposed_communication=parts["communication"],
        overhead=parts["overhead"],
        tokens_per_second_per_gpu=each,
        tokens_per_second=rate,
        mfu=mfu.to(""),
        hfu=hfu.to(""),
        low=low,
        high=high,
        interval_basis=interval.basis,
        communication_share=share.to(""),
        trail=trail.done(),
    )
