"""Stage 1: what is trained, how much it computes, and in which formats."""

from __future__ import annotations

from advisor.plan import Plan
from advisor.ui.format import compact, number, percent
from advisor.ui.panels.parts import table
from advisor.ui.panels.tables.card import TableCard
from advisor.ui.text import N_, Texts


def size_of_job(plan: Plan, texts: Texts) -> str:
    """Parameters and compute."""
    t, lang, workload = texts.t, texts.lang, plan.workload
    total = workload.parameters_total.m_as("parameter")
    trained = workload.parameters_trainable.m_as("parameter")
    active = workload.parameters_active.m_as("parameter")
    rows = [
        (t("all parameters"), compact(total, lang), ""),
        (t("trained parameters"), compact(trained, lang), percent(trained / total, lang, 3)),
        (t("active parameters per token"), compact(active, lang), percent(active / total, lang, 3)),
        (t("compute per token"), f"{number(workload.flop_per_token.m_as('GFLOP / token'), lang)} GFLOP", ""),
        (
            t("done by the GPU (causal half of attention, recomputation)"),
            f"{number(workload.hardware_flop_per_token.m_as('GFLOP / token'), lang)} GFLOP",
            "",
        ),
        (t("compute of the whole run"), f"{workload.training_flop.m_as('FLOP'):.2e} FLOP", ""),
    ]
    return table([(t("quantity"), False), (t("value"), True), (t("share"), True)], rows)


def formats(plan: Plan, texts: Texts) -> str:
    """The number format of each part of the training state."""
    t, training = texts.t, plan.training
    frozen = t("frozen") if training.method != "full" else t("trained")
    base = training.weights
    if training.quantization is not None:
        base = f"{training.quantization.format.upper()} + {training.weights}"
    what = t("adapters") if training.method != "full" else t("all weights")
    rows = [
        (t("weights"), base, frozen),
        (t("gradients"), training.gradients, what),
        (t("FP32 master weights"), training.master, what if training.master != "none" else t("none kept")),
        (t("optimizer states (each of two)"), training.moments, what),
    ]
    return table([(t("part"), False), (t("format"), False), (t("of what"), False)], rows)


CARDS = (
    TableCard(N_("How large the job is"), N_("Parameters, and what they cost to train."), size_of_job),
    TableCard(N_("What is kept, in which format"), N_("Bytes per parameter come from here."), formats),
)
