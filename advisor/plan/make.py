"""`make_plan`: a scenario through all five stages. The only place where stages meet."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from advisor import catalog
from advisor.budget import BudgetError, PriceQuote, convert, exchange_rate, gpu_prices
from advisor.cluster import ClusterEstimate, SearchInputs, assess, choose, illegal, what_binds
from advisor.plan import stages
from advisor.plan.advice import advise
from advisor.plan.records import ClusterPlan, Plan
from advisor.scenario import KEYS, Scenario, ScenarioError
from advisor.scenario.defaults import Resolved, resolve, training_of
from advisor.throughput import beyond_measured
from advisor.trail import Step
from advisor.training import Layout, Training
from advisor.units import Q, Quantity, UnitError, to_json, unit, whole
from advisor.workload import WorkloadError

SIZES = ("data", "tensor", "pipeline", "context", "expert")
#: The scenario key that a stage's refusal is about, where its sentence does not say so itself.
KEY_OF = {BudgetError: "purchase", WorkloadError: "lora.targets", catalog.CatalogError: "gpu"}


def make_plan(scenario: Scenario | dict[str, Any]) -> Plan:
    """The plan of a scenario. Raises ScenarioError (a ValueError) with one sentence when it cannot be taken."""
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_dict(scenario)
    with refusals_name_the_key():
        return _make(scenario)


@contextlib.contextmanager
def refusals_name_the_key() -> Iterator[None]:
    """Turn a stage's refusal into a ScenarioError whose sentence begins with the key it is about."""
    try:
        yield
    except tuple(KEY_OF) as error:
        key = next(key for kind, key in KEY_OF.items() if isinstance(error, kind))
        said = str(error)
        raise ScenarioError(said if said.split(".")[0] in KEYS else f"{key}: {said}") from error


def _make(scenario: Scenario) -> Plan:
    resolved = resolve(scenario)
    training = training_of(resolved)
    choice = _choose(resolved, training)
    if resolved.origins["framework"] != "given" and _model_parallel(choice.layout) and training.framework != "megatron":
        # ZeRO alone did not do: the layout found is one that only Megatron-like engines run, so the job is planned on one.
        resolved = resolve(scenario.replace(framework="megatron"))
        resolved.origins["framework"] = "derived"
        training = training_of(resolved)
        choice = _choose(resolved, training)
    _derive(resolved, choice)
    return _assemble(scenario, resolved, training, choice)


def _model_parallel(layout: Layout) -> bool:
    return layout.tensor_parallel_size * layout.pipeline_parallel_size * layout.context_parallel_size > 1


def search_inputs(resolved: Resolved, training: Training) -> SearchInputs:
    """What the scenario leaves open, as the search takes it."""
    parallelism = resolved["parallelism"] if isinstance(resolved["parallelism"], dict) else {}
    fixed = {f"{name}_sizes": (parallelism[name],) for name in SIZES[1:] if name in parallelism}
    if parallelism and not any(parallelism.get(name, 1) > 1 for name in SIZES[1:]):
        fixed = {f"{name}_sizes": (1,) for name in SIZES[1:]}
    gpu, gpus = resolved["gpu"], resolved["gpus"]
    if gpus == "auto" and "data" in parallelism:
        gpus = int(np.prod([parallelism.get(name, 1) for name in SIZES[:4]]))
    one = resolved.given
    cards = () if gpu == "auto" else (gpu,)
    return SearchInputs(
        architecture=resolved.architecture,
        training=training,
        sequence_length=resolved["sequence_length"],
        tokens=resolved["tokens"] * resolved["epochs"],
        gpus=cards,
        prices=_prices(resolved, cards),
        counts=() if gpus == "auto" else (gpus,),
        gpus_per_node=resolved.values.get("gpus_per_node", 8),
        scale_out=None if resolved["scale_out"] == "auto" else resolved["scale_out"],
        global_batch_size=resolved.values.get("global_batch_size"),
        gradient_accumulation_steps=one("gradient_accumulation_steps"),
        micro_batch_sizes=_just(one("micro_batch_size")),
        zero_stages=_just(parallelism.get("zero_stage")),
        virtual_pipeline=parallelism.get("virtual_pipeline"),
        recomputations=_just(one("activation_recomputation")),
        offloads=(one("offload") or "none",),
        model_parallel="always" if any(parallelism.get(name, 1) > 1 for name in SIZES[1:]) else "framework",
        deadline=one("deadline"),
        budget=_limit(resolved),
        **fixed,
    )


def _just(value: Any) -> tuple:
    return () if value is None else (value,)


def _limit(resolved: Resolved) -> Quantity | None:
    limit = resolved.given("budget_limit")
    return None if limit is None else convert(limit, "USD", exchange_rate(resolved["purchase"].get("as_of")))


def _quoted(resolved: Resolved) -> dict[str, PriceQuote]:
    """A price per GPU-hour of each card as this purchase would find it; cards that nobody lists are absent.

    Full training is bought by the machine of eight cards, adapters by the card.
    """
    purchase = resolved["purchase"]
    return gpu_prices(
        mode="on_demand" if purchase["mode"] == "own" else purchase["mode"],
        provider=purchase.get("provider"),
        region=purchase.get("region"),
        as_of=purchase.get("as_of"),
        quotes=stages.quotes_of(resolved),
        market=stages.market_of(purchase),
        gpus_per_machine=8 if resolved["method"] == "full" else 1,
    )


def _prices(resolved: Resolved, names: tuple[str, ...]) -> Quantity:
    """Prices of the named cards (of the whole catalog without names) in its order, infinite where nobody lists one."""
    found, usd = _quoted(resolved), unit("USD / GPU / h")
    every = names or tuple(gpu.name for gpu in catalog.gpus())
    return Q(np.array([found[name].price.m_as(usd) if name in found else np.inf for name in every]), usd)


def _sold(resolved: Resolved) -> tuple[str, ...]:
    """The cards that the named provider, region or instance or else the mainland market offers; empty where all cards count."""
    purchase = resolved["purchase"]
    home = stages.market_of(purchase)
    named = purchase.get("provider") or purchase.get("region")
    instance = (purchase.get("instance") or "").lower()
    if instance:
        names = {one.gpu for one in catalog.instances() if one.instance_type.lower() == instance}
    elif named or home == "china":
        names = {name for name, quote in _quoted(resolved).items() if named or quote.market == home}
    else:
        return ()
    able = [gpu for gpu in catalog.gpus() if gpu.name in names and gpu.supports_bf16 and gpu.form_factor != "superchip"]
    usual = [gpu for gpu in able if gpu.vendor == "NVIDIA"]
    return tuple(gpu.name for gpu in usual or able)


def _choose(resolved: Resolved, training: Training) -> ClusterEstimate:
    """The search's choice; where nothing fits on what was asked for, that very layout, so that the plan can say why."""
    inputs = search_inputs(resolved, training)
    asked = _asked(resolved, inputs) if _batch_divides(resolved, inputs) else None
    _legal(resolved, asked)
    choice = _choice(resolved, inputs)
    gpu = choice.gpu if resolved["gpu"] == "auto" else resolved["gpu"]
    kept = _as_given(resolved, choice.layout)
    if not kept and asked is None:
        asked = _asked(resolved, inputs if inputs.counts else replace(inputs, counts=(_least_count(resolved),)))
        _legal(resolved, asked)
    if asked is not None and (not kept or choice.verdict == "does_not_fit"):
        return assess(inputs, gpu, asked, choice.reasons)
    whether = resolved["parallelism"].get("sequence_parallel") if isinstance(resolved["parallelism"], dict) else None
    if whether is not None and whether != choice.layout.sequence_parallel:
        return assess(inputs, gpu, replace(choice.layout, sequence_parallel=whether), choice.reasons)
    return choice


def _choice(resolved: Resolved, inputs: SearchInputs) -> ClusterEstimate:
    """The search's choice, among the cards that are sold where the purchase is made before any others."""
    sold = () if inputs.gpus else _sold(resolved)
    if sold:
        with contextlib.suppress(catalog.CatalogError):
            choice = choose(replace(inputs, gpus=sold, prices=_prices(resolved, sold)), may_offload=False)
            if choice.verdict != "does_not_fit":
                return choice
    return choose(inputs, may_offload=False)


def _legal(resolved: Resolved, layout: Layout | None) -> None:
    reason = illegal(resolved.architecture, layout) if layout is not None else None
    if reason is not None:
        raise ScenarioError(f"parallelism cannot be used: {reason}")


def _batch_divides(resolved: Resolved, inputs: SearchInputs) -> bool:
    """Whether the layout as asked for holds the batch; where it does not, a search of parallel sizes left open may."""
    parallelism = resolved["parallelism"] if isinstance(resolved["parallelism"], dict) else {}
    batch = resolved.values.get("global_batch_size")
    if not batch or not inputs.counts or all(name in parallelism for name in SIZES[1:4]):
        return True
    model = int(np.prod([parallelism.get(name, 1) for name in SIZES[1:4]]))
    least = (resolved.given("micro_batch_size") or 1) * (resolved.given("gradient_accumulation_steps") or 1)
    return batch % (least * max(inputs.counts[0] // model, 1)) == 0


def _least_count(resolved: Resolved) -> int:
    """The fewest cards that the given parallel sizes allow."""
    parallelism = resolved["parallelism"] if isinstance(resolved["parallelism"], dict) else {}
    least = int(np.prod([parallelism.get(name, 1) for name in SIZES[:4]]))
    return least if "data" in parallelism else math.lcm(least, parallelism.get("expert", 1))


def _as_given(resolved: Resolved, layout: Layout) -> bool:
    """Whether a layout keeps every size that was given."""
    parallelism = resolved["parallelism"] if isinstance(resolved["parallelism"], dict) else {}
    asked = {f"{name}_parallel_size" if name in SIZES else name: value for name, value in parallelism.items()}
    asked.pop("sequence_parallel", None)
    for key in ("micro_batch_size", "gradient_accumulation_steps", "activation_recomputation"):
        asked[key] = resolved.given(key)
    asked["offload"] = resolved.given("offload") or "none"
    asked["global_batch_size"] = resolved.values.get("global_batch_size")
    count = resolved.given("gpus")
    if isinstance(count, int) and layout.gpus != count:
        return False
    return all(value is None or getattr(layout, name) == value for name, value in asked.items())


def _asked(resolved: Resolved, inputs: SearchInputs) -> Layout | None:
    """The layout as asked for, with the most economical choice of what was left open; None when the count was left open."""
    if not inputs.counts:
        return None
    parallelism = resolved["parallelism"] if isinstance(resolved["parallelism"], dict) else {}
    gpus = inputs.counts[0]
    model = int(np.prod([parallelism.get(name, 1) for name in SIZES[1:4]]))
    data = max(gpus // model, 1)
    micro = resolved.given("micro_batch_size") or 1
    steps = resolved.given("gradient_accumulation_steps")
    batch = resolved.values.get("global_batch_size")
    if batch and steps and resolved.given("micro_batch_size") is None:
        micro = max(batch // (steps * data), 1)
    if batch and batch % (micro * data):
        raise ScenarioError(
            f"global_batch_size must be a multiple of micro_batch_size x data = {micro * data}, but {batch} was given."
        )
    if batch and steps and batch != micro * data * steps:
        raise ScenarioError(
            f"global_batch_size must be micro_batch_size x gradient_accumulation_steps x data = {micro * steps * data} on "
            f"{gpus} GPUs, but {batch} was given."
        )
    try:
        return Layout(
            sequence_length=inputs.sequence_length,
            micro_batch_size=micro,
            gradient_accumulation_steps=steps or (batch // (micro * data) if batch else 1),
            zero_stage=parallelism.get("zero_stage", 3 if data > 1 and resolved["method"] == "full" else 0),
            data_parallel_size=data,
            tensor_parallel_size=parallelism.get("tensor", 1),
            pipeline_parallel_size=parallelism.get("pipeline", 1),
            context_parallel_size=parallelism.get("context", 1),
            expert_parallel_size=parallelism.get("expert", 1),
            sequence_parallel=parallelism.get("sequence_parallel", parallelism.get("tensor", 1) > 1),
            virtual_pipeline=parallelism.get("virtual_pipeline", 1),
            activation_recomputation=resolved.given("activation_recomputation") or "full",
            offload=resolved.given("offload") or "none",
            gpus_per_node=min(inputs.gpus_per_node, gpus),
        )
    except UnitError as error:
        raise ScenarioError(f"parallelism cannot be used: {error}") from None


def _derive(resolved: Resolved, choice: ClusterEstimate) -> None:
    """Write what the search chose back into the scenario, as derived."""
    layout = choice.layout
    chosen = {
        "gpu": choice.gpu,
        "gpus": choice.gpus,
        "gpus_per_node": layout.gpus_per_node,
        "scale_out": choice.scale_out or "none",
        "micro_batch_size": layout.micro_batch_size,
        "gradient_accumulation_steps": layout.gradient_accumulation_steps,
        "global_batch_size": layout.global_batch_size,
        "activation_recomputation": layout.activation_recomputation,
        "offload": layout.offload,
    }
    for key, value in chosen.items():
        if resolved.values.get(key) in (None, "auto"):
            resolved.put(key, value, "derived")
    sizes = {name: getattr(layout, f"{name}_parallel_size") for name in SIZES}
    sizes |= {name: getattr(layout, name) for name in ("zero_stage", "sequence_parallel", "virtual_pipeline")}
    origin = "given" if isinstance(resolved.given("parallelism"), dict) else "derived"
    resolved.put("parallelism", to_json(sizes), origin)


def _assemble(scenario: Scenario, resolved: Resolved, training: Training, choice: ClusterEstimate) -> Plan:
    """Every stage on the chosen layout."""
    gpu, layout = catalog.gpu(choice.gpu), choice.layout
    fabric, throughput = choice.fabric, choice.throughput
    workload = stages.plan_workload(resolved, training, layout)
    memory = stages.plan_memory(resolved, training, layout, choice.memory)
    interconnect = stages.plan_interconnect(resolved, training, layout, gpu, fabric, throughput)
    tokens = resolved["tokens"] * resolved["epochs"]
    time = (tokens / throughput.tokens_per_second).to("h")
    per_step = Q(layout.global_batch_size * layout.sequence_length, unit("token"))
    wider = _wider(gpu.name, choice.gpus)
    cluster = ClusterPlan(
        gpu=gpu.name,
        gpus=choice.gpus,
        nodes=choice.nodes,
        layout=layout,
        step_time=throughput.step_time,
        steps=int(whole((tokens / per_step).to(""))),
        tokens_per_second_per_gpu=throughput.tokens_per_second_per_gpu,
        tokens_per_second=throughput.tokens_per_second,
        mfu=throughput.mfu,
        hfu=throughput.hfu,
        training_time=time,
        gpu_hours=(time * Q(choice.gpus, unit("GPU"))).to("GPU * h"),
        low=(time * (throughput.low / throughput.step_time) * wider[0]).to("h"),
        high=(time * (throughput.high / throughput.step_time) * wider[1]).to("h"),
        throughput=throughput,
        interconnect=interconnect,
        network=stages.plan_network(layout, fabric),
        reasons=choice.reasons,
    )
    price = None if choice.cost is None else choice.cost / choice.gpu_hours
    storage = stages.plan_storage(resolved, training, workload, cluster, price)
    cluster = replace(
        cluster,
        limits=what_binds(throughput, memory, layout, choice.communication),
        host=stages.plan_host(cluster, memory, storage),
    )
    budget = stages.plan_budget(resolved, gpu, memory, cluster, storage)
    trail: list[Step] = []
    for estimate in (workload, memory, throughput, storage, budget):
        trail += estimate.trail
    plan = Plan(
        given=scenario.to_dict(),
        scenario=resolved.to_dict(),
        training=training,
        workload=workload,
        memory=memory,
        cluster=cluster,
        storage=storage,
        budget=budget,
        advice=(),
        trail=tuple(trail),
    )
    return replace(plan, advice=advise(plan, resolved))


def _wider(gpu: str, gpus: int) -> tuple[float, float]:
    """What the range of the time is widened by where no published run was on this kind of card, or on nearly so many."""
    if not beyond_measured(gpu, gpus):
        return 1.0, 1.0
    low, _, high = catalog.constant_range("throughput.unmeasured_card")
    return float(low.m_as("")), float(high.m_as(""))
