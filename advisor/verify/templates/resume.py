"""Kill-and-resume: a small training is killed and must go on from its last checkpoint with the same loss.

torchrun --max-restarts 1 --nproc-per-node 2 resume.py CHECKPOINT_FOLDER RESULT_FILE

The last rank kills itself once (SIGKILL, as a fault does); torchrun starts all ranks again. Needs PyTorch only.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

STEPS, SAVE_EVERY, KILL_AT, WIDTH = 60, 10, 37, 1024


def batch(step, rank, device):
    """The same data for the same step and rank, before and after the fault."""
    generator = torch.Generator().manual_seed(1_000_003 * step + rank)
    return torch.randn(32, WIDTH, generator=generator).to(device)


def save(path, state):
    """Written whole or not at all: a temporary name, flushed, then renamed."""
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def main() -> None:
    folder, target = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    last, killed, losses = folder / "last.pt", folder / "killed.json", folder / "losses.json"
    cuda = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if cuda:
        torch.cuda.set_device(local)
    # a place of its own in the store for each start: ranks would meet the addresses of those that were killed
    store, own, count = next(dist.rendezvous("env://"))
    store = dist.PrefixStore("start_" + os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
    dist.init_process_group("nccl" if cuda else "gloo", store=store, rank=own, world_size=count)
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.Linear(WIDTH, WIDTH)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first, seen = 0, {}
    again = killed.exists()
    if again:
        state = torch.load(last, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first, seen = state["step"], json.loads(losses.read_text(encoding="utf-8"))
    same, resumed_after = True, None
    for step in range(first, STEPS):
        data = batch(step, rank, device)
        loss = (model(data) - data.flip(1)).square().mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= ranks
        optimizer.step()
        optimizer.zero_grad()
        total = loss.detach().clone()
        dist.all_reduce(total)
        value = total.item() / ranks
        if again and resumed_after is None:
            resumed_after = time.time() - json.loads(killed.read_text(encoding="utf-8"))["time"]
        if rank == 0:
            before = seen.get(str(step))
            same = same and (before is None or abs(before - value) <= 1e-4 * abs(before))
            seen[str(step)] = value
            if not again:
                losses.write_text(json.dumps(seen), encoding="utf-8")
            if (step + 1) % SAVE_EVERY == 0:
                save(last, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1})
        dist.barrier()
        if not again and step == KILL_AT:
            if rank == ranks - 1:
                killed.write_text(json.dumps({"time": time.time(), "step": step}), encoding="utf-8")
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)  # what a fault does to the others: they wait, until torchrun ends them
    if rank == 0:
        result = {
            "advisor_kit": "resume",
            "killed_at_step": KILL_AT,
            "saved_step": KILL_AT // SAVE_EVERY * SAVE_EVERY,
            "resumed_step": first,
            "seconds_to_resume": round(resumed_after or 0.0, 1),
            "same_loss": bool(again and same),
        }
        Path(target).write_text(json.dumps(result), encoding="utf-8")
        print(json.dumps(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
