"""All GPUs of a node at full load for minutes, watching temperature and the kernel's Xid messages. Needs PyTorch only.

torchrun --nproc-per-node 8 stability.py SECONDS RESULT_FILE
"""

import json
import os
import re
import subprocess
import sys
import time

import torch
import torch.distributed as dist

#: Side of the matrices, and how many products are timed together.
SIDE, BATCH = 8192, 20


def xid_messages():
    """How many Xid lines the kernel's log holds; None where it may not be read."""
    for command in (["dmesg"], ["journalctl", "-k", "--no-pager"], ["sudo", "-n", "dmesg"]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603 (own words)
        except (OSError, subprocess.SubprocessError):
            continue
        if done.stdout.strip():
            return len(re.findall(r"NVRM: Xid", done.stdout))
    return None


def hottest():
    """Degrees Celsius of the hottest GPU; None where nvidia-smi does not say."""
    command = ["nvidia-smi", "--query-gpu=temperature.gpu", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603 (own words)
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = [int(line) for line in done.stdout.split() if line.isdigit()]
    return max(numbers, default=None)


def main() -> None:
    seconds, target = float(sys.argv[1]), sys.argv[2]
    cuda = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if cuda:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if cuda else "gloo")
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    side = SIDE if cuda else 512
    left = torch.randn(side, side, device=device, dtype=torch.bfloat16)
    gradient = torch.randn(1 << 24 if cuda else 1 << 16, device=device)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    before, peak, own = xid_messages() if rank == 0 else None, None, []
    start = time.monotonic()
    going = torch.ones(1, device=device)
    while going.item():
        tick = time.monotonic()
        for _ in range(BATCH if cuda else 2):
            product = left @ left
        if cuda:
            torch.cuda.synchronize()
        own.append(time.monotonic() - tick)
        del product
        gradient.normal_()
        dist.all_reduce(gradient)
        if rank == 0:
            if len(own) % 20 == 1:
                now = hottest()
                peak = now if peak is None else max(peak, now or 0)
            going.fill_(float(time.monotonic() - start < seconds))
        dist.broadcast(going, 0)
    tenth = max(len(own) // 10, 1)
    middle = own[tenth : 2 * tenth] or own  # after the first seconds, before the heat
    early, late = sum(middle) / len(middle), sum(own[-tenth:]) / tenth
    times = [None] * ranks
    dist.all_gather_object(times, (sum(own) / len(own), late / early - 1))
    if rank == 0:
        means = sorted(one[0] for one in times)
        after = xid_messages()
        result = {
            "advisor_kit": "stability",
            "seconds": round(time.monotonic() - start, 1),
            "gpus": ranks,
            "xid": None if before is None or after is None else max(after - before, 0),
            "hottest": peak,
            "drift": round(max(one[1] for one in times), 4),
            "spread": round(means[-1] / means[len(means) // 2] - 1, 4),
        }
        with open(target, "w", encoding="utf-8") as file:
            json.dump(result, file)
        print(json.dumps(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
