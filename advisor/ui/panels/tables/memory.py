"""Stage 2: the terms at the peak, and the ladder of changes."""

from __future__ import annotations

from advisor.plan import Plan
from advisor.ui.format import number, percent
from advisor.ui.panels.parts import Markup, escape, table, verdict
from advisor.ui.panels.tables.card import TableCard
from advisor.ui.text import N_, Texts

TERMS = {
    "weights": N_("weights"),
    "gradients": N_("gradients"),
    "optimizer_states": N_("optimizer states"),
    "activations": N_("activations"),
    "logits": N_("logits (loss)"),
    "buffers": N_("buffers"),
    "runtime": N_("runtime (CUDA, NCCL)"),
}
PHASES = {
    "loss": N_("while the loss is computed"),
    "backward": N_("in the backward pass"),
    "backward_begin": N_("at the start of the backward pass"),
    "backward_end": N_("at the end of the backward pass"),
    "embedding": N_("in the gradient of the embedding"),
    "optimizer_step": N_("in the optimizer step"),
}


def terms(plan: Plan, texts: Texts) -> str:
    """Each term in both units, and its share of the card."""
    t, lang, memory = texts.t, texts.lang, plan.memory
    room = memory.capacity.m_as("GiB / GPU") if memory.capacity is not None else None

    def line(name: Markup | str, value: object) -> tuple:
        gib = value.m_as("GiB / GPU")
        share = percent(gib / room, lang) if room else ""
        return name, number(gib, lang), number(value.m_as("GB / GPU"), lang), share

    rows = []
    for key, words in TERMS.items():
        value = getattr(memory.at_peak, key, None) or getattr(memory, key)
        swatch = f'<i class="advisor-swatch" style="background:var(--advisor-{key})"></i>'
        rows.append(line(Markup(f"{swatch}{escape(t(words))}"), value))
    rows.append(line(t("allocated by PyTorch"), memory.allocated))
    needed = escape(t("needed, as nvidia-smi shows"))
    rows.append(line(Markup(f"<b>{needed}</b>"), memory.total))
    rows.append((t("of 80 % of runs like this"), _range(memory, "GiB / GPU", lang), _range(memory, "GB / GPU", lang), ""))
    if memory.capacity is not None:
        rows.append(line(t("the card has"), memory.capacity))
    columns = [(t("term, at the peak"), False), ("GiB", True), ("GB", True), (t("of the card"), True)]
    phase = t(PHASES[memory.peak_phase]) if memory.peak_phase in PHASES else memory.peak_phase
    return table(columns, rows, t("The peak comes %(phase)s.", phase=phase))


def _range(memory: object, name: str, lang: str) -> str:
    return f"{number(memory.low.m_as(name), lang)} – {number(memory.high.m_as(name), lang)}"


def ladder(plan: Plan, texts: Texts) -> str:
    """Changes that make it smaller, cheapest first."""
    t, lang = texts.t, texts.lang
    rungs = plan.memory.escalation
    if not rungs:
        return ""
    rows = [
        (
            Markup(f"{escape(texts.pick(one.text))}{_quality(one, texts)}"),
            number(one.total.m_as("GiB / GPU"), lang),
            percent(one.slowdown, lang),
            verdict(texts, one.verdict),
        )
        for one in rungs
    ]
    columns = [(t("change, on top of those above"), False), ("GiB", True), (t("slower by"), True), (t("then"), False)]
    return table(columns, rows)


def _quality(one: object, texts: Texts) -> str:
    words = texts.pick(one.quality)
    return f"<br><small>{escape(words)}</small>" if words else ""


CARDS = (
    TableCard(N_("What fills the card, in numbers"), N_("Per card; a card's label is in GB, tools show GiB."), terms),
    TableCard(N_("What makes it fit, in numbers"), N_("Cheapest change first."), ladder),
)
