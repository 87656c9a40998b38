"""One all-reduce over all ranks: who is there, on which device, and does the sum come out right? Needs PyTorch only.

torchrun --nproc-per-node 8 rank_check.py EXPECTED_RANKS RESULT_FILE
"""

import json
import os
import socket
import sys

import torch
import torch.distributed as dist


def main() -> None:
    cuda = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if cuda:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    total = torch.full((1 << 20,), float(rank), device=device)
    dist.all_reduce(total)
    due = ranks * (ranks - 1) / 2
    wrong = int((total != due).sum().item())
    identity = str(torch.cuda.get_device_properties(local).uuid) if cuda else f"cpu {local}"
    mine = {"host": socket.gethostname(), "device": identity, "wrong": wrong}
    everyone = [None] * ranks
    dist.all_gather_object(everyone, mine)
    if rank == 0:
        devices = [(one["host"], one["device"]) for one in everyone]
        result = {
            "advisor_kit": "rank_check",
            "ranks": ranks,
            "expected_ranks": int(sys.argv[1]),
            "sum": float(total[0].item()),
            "expected_sum": due,
            "wrong": sum(one["wrong"] for one in everyone),
            "hosts": len({one["host"] for one in everyone}),
            "shared_devices": len(devices) - len(set(devices)),
        }
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump(result, file)
        print(json.dumps(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
