"""Ways out of a plan that does not fit: changes of the scenario, each planned as a whole and seen to fit before it is offered.

The ladder of stage 2 says which changes make a run smaller; here each becomes what the user would write into the scenario.
Small changes come first and larger ones after, and no two of a kind: a cheaper recipe, more cards, a larger card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from advisor import catalog
from advisor.plan.make import make_plan
from advisor.plan.records import Plan
from advisor.scenario import Scenario
from advisor.units import BytesPerGPU, Record, Word

#: Ways offered at once: more are a menu, not a way out.
MOST_WAYS = 4
#: Cards are doubled so often before that is no way out any more.
DOUBLINGS = 6
#: What says how the cards are shared out: given for one number of cards, it may contradict another.
SHARED_OUT = ("parallelism", "gradient_accumulation_steps", "global_batch_size")

#: Scenario keys -> changed ones, and how the change is called.
Changes = dict[str, Any]
Named = tuple[str, str, str, Changes]


@dataclass(frozen=True, kw_only=True)
class WayOut(Record):
    """One change that makes a plan fit. code: as the rungs of the ladder; changes: scenario keys to set, None takes a key away.

    verdict and need: of the plan with the change. text: what is done, in both languages, as few words as a button has.
    """

    code: Word
    text: dict
    changes: dict
    verdict: Word
    need: BytesPerGPU


def ways_out(plan: Plan, make: Callable[[dict[str, Any]], Plan] | None = None, most: int = MOST_WAYS) -> tuple[WayOut, ...]:
    """What would make the plan fit, the smallest change first; nothing for a plan that does.

    make: turns a JSON-ready scenario into a plan and raises ValueError where it cannot (`make_plan` by default).
    """
    if plan.memory.verdict != "does_not_fit":
        return ()
    make = make or (lambda given: make_plan(Scenario.from_dict(given)))
    more, larger = (_first_that_fits(_tried(plan, make, named)) for named in (_more_cards(plan), _larger_cards(plan)))
    recipes = _smallest_and_sure(_tried(plan, make, _recipes(plan)))
    found = [*recipes, *more, *larger]
    return tuple((found or _first_that_fits(_tried(plan, make, _advised(plan))))[:most])


def applied(given: dict[str, Any], changes: Changes) -> dict[str, Any]:
    """A scenario with the changes of a way out."""
    kept = {key: value for key, value in given.items() if key not in changes}
    return {**kept, **{key: value for key, value in changes.items() if value is not None}}


def _tried(plan: Plan, make: Callable[[dict[str, Any]], Plan], named: Iterator[Named]) -> list[WayOut]:
    """The changes that make the plan fit, or at least borderline; the first that fits is the last."""
    ways = []
    for code, en, zh, changes in named:
        try:
            found = make(applied(plan.given, changes))
        except ValueError:
            continue  # contradicts what else is given: no way out
        memory = found.memory
        if memory.verdict in ("fits", "tight"):
            text = {"en": en, "zh": zh}
            ways.append(WayOut(code=code, text=text, changes=changes, verdict=memory.verdict, need=memory.total))
        if memory.verdict == "fits":
            break
    return ways


def _first_that_fits(found: list[WayOut]) -> list[WayOut]:
    """One way: that fits, or at least may."""
    return [one for one in found if one.verdict == "fits"] or found[:1]


def _smallest_and_sure(found: list[WayOut]) -> list[WayOut]:
    """The smallest change even if it is to be tested first, and the one that fits."""
    return found[:1] + [one for one in found[1:] if one.verdict == "fits"]


def _recipes(plan: Plan) -> Iterator[Named]:
    """The training changed, the cards kept: each change alone as the ladder climbs, then with the ones before it."""
    steps = list(_steps(plan))
    yield from steps
    whole = [step for step in steps if step[0] not in ("lora", "qlora")]
    for most in range(2, len(whole) + 1):
        yield _together(whole[:most])
    for step in steps:
        if step[0] in ("lora", "qlora") and whole:
            yield _together([*(one for one in whole if one[0] != "optimizer_8bit"), step])


def _together(steps: list[Named]) -> Named:
    """Several changes as one."""
    changes = {key: value for step in steps for key, value in step[3].items()}
    return (
        "_and_".join(step[0] for step in steps),
        " + ".join(step[1].removeprefix("Use ") for step in steps),
        "＋".join(step[2] for step in steps),
        changes,
    )


def _steps(plan: Plan) -> Iterator[Named]:
    """The single changes of the recipe."""
    training, layout, given = plan.training, plan.cluster.layout, plan.given
    if training.precision in ("fp32", "fp32_autocast"):
        yield "mixed_precision", "Train in bf16", "改用 bf16 混合精度", {"precision": "bf16_mixed", "dtypes": None}
    if layout.activation_recomputation != "full":
        yield "recomputation", "Recompute activations", "开启激活重计算", {"activation_recomputation": "full"}
    if layout.micro_batch_size > 1:
        changes: Changes = {"micro_batch_size": 1}
        if "gradient_accumulation_steps" in given:
            changes["gradient_accumulation_steps"] = layout.gradient_accumulation_steps * layout.micro_batch_size
        elif "global_batch_size" not in given:
            changes["global_batch_size"] = layout.global_batch_size
        yield "micro_batch", "Micro-batch 1", "微批大小降为 1", changes
    if not training.fused_loss:
        yield "fused_loss", "Fused loss", "融合交叉熵", {"fused_loss": True}
    if training.optimizer == "adamw":
        yield "optimizer_8bit", "8-bit AdamW", "8-bit AdamW", {"optimizer": "adamw_8bit"}
    if layout.data_parallel_size > 1 and layout.zero_stage < 3 and training.framework != "megatron":
        sizes = given.get("parallelism") if isinstance(given.get("parallelism"), dict) else {}
        yield "zero_3", "ZeRO-3 / FSDP", "ZeRO-3 / FSDP", {"parallelism": {**sizes, "zero_stage": 3}}
    if training.method in ("lora", "dora"):
        yield "qlora", "Use QLoRA", "改用 QLoRA", {"method": "qlora", "dtypes": None}
    if training.method == "full":
        changes = {"method": "lora", **dict.fromkeys(("dtypes", "optimizer_in_backward", "offload", "optimizer"))}
        yield "lora", "Use LoRA", "改用 LoRA", changes
        yield "qlora", "Use QLoRA", "改用 QLoRA", {**changes, "method": "qlora"}


def _more_cards(plan: Plan) -> Iterator[Named]:
    """Twice the cards, and twice again, of the same kind; the batch stays as long as it divides over them."""
    name, given = catalog.short_name(plan.cluster.gpu), plan.given
    for power in range(1, DOUBLINGS + 1):
        count = plan.cluster.gpus * 2**power
        words = "more_cards", f"{count} × {name}", f"{count} 张 {name}"
        yield *words, {"gpus": count}
        bound = [key for key in SHARED_OUT if key in given]
        for most in range(1, len(bound) + 1):
            yield *words, {"gpus": count, **dict.fromkeys(bound[:most])}


def _larger_cards(plan: Plan) -> Iterator[Named]:
    """The next larger cards that are for rent, as many as planned: those that hold the upper end of the range first."""
    rented = {one.gpu for one in catalog.instances() if one.on_demand is not None}
    larger = [
        card
        for card in catalog.gpus()
        if card.name in rented
        and card.vendor == "NVIDIA"
        and card.form_factor != "superchip"
        and card.supports_bf16
        and card.capacity >= max(plan.memory.total, plan.memory.capacity)
    ]
    larger.sort(key=lambda card: (card.capacity < plan.memory.high, card.capacity, -card.launch_year))
    for card in larger[:2]:
        name = f"{plan.cluster.gpus} × {catalog.short_name(card.name)}"
        yield "larger_card", name, name, {"gpu": card.name}


def _advised(plan: Plan) -> Iterator[Named]:
    """Whatever cards the search advises, where nothing near the plan is enough."""
    bound = ("gpu", "gpus", "gpus_per_node", "scale_out", "parallelism")
    yield "advise", "Advise me the cards", "由系统推荐卡型与卡数", {key: None for key in bound if key in plan.given}
