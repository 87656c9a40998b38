"""Live bytes by category during a step: every storage that PyTorch's operations make is counted until it is freed."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

CATEGORIES = ("weights", "gradients", "optimizer_states", "activations")


def tracker(torch: Any, model: Any, optimizer: Any) -> Any:
    """A context in which live bytes are counted; `peak` then holds them by category at the highest total.

    Weights and optimizer states are known beforehand, gradients are told by the parameter they arrive at, and what was made in
    the forward pass is an activation (the logits and the loss's own temporaries among them).
    """
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class LiveBytes(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.category: dict[int, str] = {}
            self.size: dict[int, int] = {}
            self.references: dict[int, Any] = {}
            self.live: Counter[str] = Counter()
            self.peak: Counter[str] = Counter()
            for tensor in (*model.parameters(), *model.buffers()):
                self.count(tensor, "weights")
            for state in optimizer.state.values():
                for value in state.values():
                    if isinstance(value, torch.Tensor):
                        self.count(value, "optimizer_states")
            self.hooks = [
                parameter.register_post_accumulate_grad_hook(self.arrived)
                for parameter in model.parameters()
                if parameter.requires_grad
            ]

        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
            result = function(*arguments, **(named or {}))
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    self.count(leaf, "activations")
            return result

        def count(self, tensor: Any, category: str) -> None:
            storage = tensor.untyped_storage()
            key = id(storage)
            if key in self.references and self.references[key]() is storage:
                return
            self.references[key] = weakref.ref(storage, lambda _gone, key=key: self.freed(key))
            self.category[key], self.size[key] = category, storage.nbytes()
            self.live[category] += self.size[key]
            if self.live.total() > self.peak.total():
                self.peak = Counter(self.live)

        def freed(self, key: int) -> None:
            self.live[self.category.pop(key)] -= self.size.pop(key)
            self.references.pop(key)

        def arrived(self, parameter: Any) -> None:
            key = id(parameter.grad.untyped_storage())
            if key in self.category and self.category[key] != "gradients":
                self.live[self.category[key]] -= self.size[key]
                self.category[key] = "gradients"
                self.live["gradients"] += self.size[key]

        def __exit__(self, *details: Any) -> None:
            for hook in self.hooks:
                hook.remove()
            super().__exit__(*details)

    return LiveBytes()
