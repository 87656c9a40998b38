"""What a user asks: the scenario, its keys, and the one door through which outside input comes in.

`Scenario.from_dict` takes JSON-like data from a file, a link, a form or Python, and refuses the first thing it cannot take with
one sentence: the key, what was given, what is allowed. A refused scenario never yields a partial plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from advisor import catalog
from advisor.scenario.fields import (
    Reader,
    ScenarioError,
    allowed_words,
    choice,
    day,
    did_you_mean,
    either,
    flag,
    group,
    integer,
    model,
    named,
    number,
    quantity,
    quotes,
    share,
    shown,
    targets,
    text,
)
from advisor.units import to_json


def scale_out_link(name: str) -> catalog.Link:
    """A link between nodes. Raises ValueError for one that joins cards inside a node."""
    link = catalog.link(name)
    if link.scope != "scale_out":
        raise ValueError(f"{link.name} joins cards inside a node; between nodes use InfiniBand, RoCEv2, EFA or Ethernet.")
    return link


DTYPE = choice("fp32", "bf16", "fp16", "fp8", "int8", "none")
SIZE = integer(1, 100_000)

#: Every key a scenario may have, and what reads it.
KEYS: MappingProxyType[str, Reader] = MappingProxyType(
    {
        "model": model,
        "method": choice("full", "lora", "qlora", "dora"),
        "lora": group(rank=integer(1, 4096), targets=targets, dtype=choice("fp32", "bf16"), dropout=number(0.0, 0.99)),
        "quantization": group(format=choice("nf4", "fp4", "int8", "int4"), double_quantization=flag, upcast_unquantized=flag),
        "precision": choice("bf16_mixed", "fp16_mixed", "fp32_autocast", "bf16_pure", "fp32", "fp8_mixed"),
        "dtypes": group(weights=DTYPE, gradients=DTYPE, master=DTYPE, moments=DTYPE),
        "optimizer": choice(
            "adamw", "adamw_8bit", "paged_adamw", "paged_adamw_8bit", "adafactor", "sgd", "sgd_momentum", "lion", "muon"
        ),
        "optimizer_in_backward": flag,
        "framework": choice("transformers", "deepspeed", "fsdp", "megatron", "torchtitan", "torchtune"),
        "software": choice("stock", "tuned"),
        "compile": flag,
        "sequence_length": integer(1, 16_777_216),
        "micro_batch_size": integer(1, 65_536),
        "gradient_accumulation_steps": integer(1, 1_000_000),
        "global_batch_size": integer(1, 10_000_000),
        "activation_recomputation": choice("none", "selective", "full"),
        "activation_offload": flag,
        "attention": choice("eager", "sdpa", "flash"),
        "fused_loss": flag,
        "parallelism": either(
            "auto",
            group(
                zero_stage=integer(0, 3),
                data=SIZE,
                tensor=SIZE,
                pipeline=SIZE,
                context=SIZE,
                expert=SIZE,
                sequence_parallel=flag,
                virtual_pipeline=integer(1, 64),
            ),
        ),
        "offload": choice("none", "optimizer", "optimizer_and_parameters"),
        "gpu": either("auto", named(catalog.gpu)),
        "gpus": either("auto", integer(1, 200_000)),
        "gpus_per_node": integer(1, 256),
        "scale_out": either("auto", named(scale_out_link)),
        "tokens": quantity("token", "1 token", "1e18 token"),
        "epochs": number(0.001, 10_000),
        "deadline": quantity("s", "1 minute", "20 year"),
        "budget_limit": quantity("USD", "0 USD", "1e12 USD", "CNY"),
        "data": group(
            raw_size=quantity("B", "1 B", "1e6 PB"),
            files=integer(1, 10**12),
            mean_file_size=quantity("B", "1 B", "1 PB"),
            bytes_per_token=quantity("B / token", "0.1 B/token", "1e9 B/token"),
            location=text(80),
            upload_bandwidth=quantity("GB / s", "1 kB/s", "100 TB/s"),
        ),
        "checkpoint": group(
            interval=either("auto", quantity("s", "1 s", "10 year")), keep=integer(1, 10_000), asynchronous=flag
        ),
        "purchase": group(
            provider=text(80),
            region=text(80),
            instance=text(80),
            mode=choice("on_demand", "spot", "reserved_1y", "reserved_3y", "own"),
            market=choice("international", "china"),
            other_use=share(),
            utilization=share(0.001),
            currency=choice("USD", "CNY"),
            as_of=day,
            experiments=integer(0, 10_000),
            quotes=quotes,
        ),
    }
)


@dataclass(frozen=True)
class Scenario:
    """A checked scenario: only what was given. Defaults are filled in by the plan, which says which they were."""

    given: MappingProxyType[str, Any]

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Check a JSON-like dictionary. Raises ScenarioError with one sentence on the first thing it cannot take."""
        if not isinstance(data, dict):
            raise ScenarioError(f"A scenario must be a dictionary with at least 'model', but {shown(data)} was given.")
        known = tuple(KEYS)
        for key in data:
            if key not in KEYS:
                raise ScenarioError(
                    f"A scenario has no key {shown(key)}; it may have {allowed_words(known)}.{did_you_mean(key, known)}"
                )
        if data.get("model") is None:
            raise ScenarioError("model must be given: a catalog name, a size such as '13B' or a Hugging Face config object.")
        given = {key: KEYS[key](key, data[key]) for key in KEYS if data.get(key) is not None}
        _check_together(given)
        return cls(MappingProxyType(given))

    def to_dict(self) -> dict[str, Any]:
        """The given keys as JSON-ready data; `from_dict` takes it back."""
        return to_json(dict(self.given))

    def replace(self, **changes: Any) -> Scenario:
        """The scenario with some keys changed (None takes a key away), checked again as a whole."""
        return Scenario.from_dict({**self.given, **changes})


def _check_together(given: dict[str, Any]) -> None:
    """Refuse keys that contradict each other."""
    method = given.get("method", "lora")
    if "quantization" in given and given.get("method") not in (None, "qlora"):
        raise ScenarioError(f"quantization belongs to method qlora, but method {method} was given.")
    if "lora" in given and method == "full":
        raise ScenarioError("lora belongs to method lora, qlora or dora, but method full was given.")
    batch = [given.get(key) for key in ("global_batch_size", "micro_batch_size", "gradient_accumulation_steps")]
    total, micro, steps = batch
    if total and micro and total % micro:
        raise ScenarioError(f"global_batch_size must be a multiple of micro_batch_size {micro}, but {total} was given.")
    if total and steps and not micro and total % steps:
        raise ScenarioError(
            f"global_batch_size must be a multiple of gradient_accumulation_steps {steps}, but {total} was given."
        )
    if total and micro and steps and total % (micro * steps):
        raise ScenarioError(
            f"global_batch_size must be a multiple of micro_batch_size x gradient_accumulation_steps = {micro * steps}, "
            f"but {total} was given."
        )
    layout = given.get("parallelism")
    if isinstance(layout, dict):
        sizes = {name: layout.get(name, 1) for name in ("data", "tensor", "pipeline", "context")}
        product = math.prod(sizes.values())
        if layout.get("virtual_pipeline", 1) > 1 and sizes["pipeline"] == 1:
            raise ScenarioError(
                f"parallelism.virtual_pipeline needs parallelism.pipeline above 1, but {layout['virtual_pipeline']} was given."
            )
        gpus = given.get("gpus")
        if isinstance(gpus, int) and "data" in layout and product != gpus:
            raise ScenarioError(f"gpus must be data x tensor x pipeline x context = {product}, but {gpus} was given.")
        if isinstance(gpus, int) and gpus % (product // sizes["data"]):
            fixed = product // sizes["data"]
            raise ScenarioError(f"gpus must be a multiple of tensor x pipeline x context = {fixed}, but {gpus} was given.")
        if total and micro and steps and "data" in layout and total != micro * steps * sizes["data"]:
            raise ScenarioError(
                f"global_batch_size must be micro_batch_size x gradient_accumulation_steps x data = "
                f"{micro * steps * sizes['data']}, but {total} was given."
            )
