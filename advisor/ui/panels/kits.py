"""The launch kit of the plan on screen: an engine is chosen, a zip comes down."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets

from advisor.ui.bridge import PlanKeeper
from advisor.ui.models import PlanModel
from advisor.ui.panels.parts import box, button, make, row, text, title
from advisor.ui.text import N_, Texts

#: (what the reader calls it, what `advisor.handoff` calls it), in the order most people look for them.
ENGINES = (
    ("torchrun", "torchrun"),
    ("Accelerate (FSDP2)", "accelerate"),
    ("DeepSpeed", "deepspeed"),
    ("LLaMA-Factory", "llamafactory"),
    ("axolotl", "axolotl"),
    ("torchtune", "torchtune"),
    ("Megatron-LM", "megatron"),
    ("Megatron-Bridge", "megatron_bridge"),
    ("torchtitan", "torchtitan"),
    ("SkyPilot", "skypilot"),
    ("Kubernetes (Kubeflow)", "kubernetes"),
    ("Slurm", "slurm"),
)


class KitPart:
    """Files that start the planned run on an engine the team already uses."""

    def __init__(self, model: PlanModel, keeper: PlanKeeper, texts: Texts, guard: Callable) -> None:
        self.model, self.keeper = model, keeper
        heading = text()
        words = N_("Files that start this plan on your engine, with the commands to test the machines first.")
        texts.bind(heading, value=lambda: title(texts.t("Launch kit"), texts.t(words)))
        self.engine = texts.bind(make(ipywidgets.Dropdown, options=list(ENGINES)), description=N_("Engine"))
        fetch = button(texts, N_("Download the kit (.zip)"))
        fetch.on_click(guard(lambda _: self.download()))
        self.root = box(heading, row(self.engine, fetch))

    def download(self) -> None:
        """Write the kit and hand it to the browser. Raises HandoffError when the engine cannot run the plan."""
        from advisor.handoff import kit_archive

        if self.model.plan is None:
            return
        engine = self.engine.value
        self.keeper.save_file(f"kit-{engine}.zip", "application/zip", kit_archive(self.model.plan, engine))
