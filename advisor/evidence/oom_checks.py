"""What an out-of-memory message means: figures that contradict each other, and the cause they point to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.evidence.parts import cut_problem, problem
from advisor.evidence.report import Problem
from advisor.units import Q, Quantity, unit

if TYPE_CHECKING:
    from advisor.evidence.oom import OomReading

#: Figures are rounded to two digits each; a sum may be off by some hundredths.
SLACK = Q(0.06, unit("GiB"))


def check(reading: OomReading, truncated: bool) -> tuple[Problem, ...]:
    """Every problem of one message, contradictions first."""
    result: list[Problem] = []
    if truncated:
        result.append(cut_problem("before the end of the message", "消息结束之前"))
    if reading.format == "host":
        return (*result, *_host(reading))
    result += _contradictions(reading)
    result += _holders(reading)
    result += _fragmentation(reading)
    if reading.tried is None or (reading.total is None and reading.format not in ("mps",)):
        result.append(
            problem(
                "figures_missing",
                "info",
                "The message does not say what the device has and who holds it: paste the whole line, or nvidia-smi "
                "at that moment.",
                "消息没有说明显存总量和占用者：请粘贴完整的一行，或当时的 nvidia-smi 输出。",
            )
        )
    if len(reading.gpus) > 1:
        result.append(
            problem(
                "several_gpus",
                "info",
                f"GPUs {', '.join(map(str, reading.gpus))} ran out; the first message is the one read here.",
                f"GPU {'、'.join(map(str, reading.gpus))} 都显存不足；此处读取的是第一条消息。",
            )
        )
    result += _phase(reading)
    return tuple(result)


def _gib(value: Quantity) -> str:
    return f"{value.m_as('GiB'):.2f} GiB"


def _sum(*values: Quantity | None) -> Quantity:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else Q(0.0, unit("GiB"))


def _contradictions(reading: OomReading) -> list[Problem]:
    result = []
    total = reading.total
    others = [one["gib"] for one in reading.other_processes or ()]
    named = {
        "free": reading.free,
        "in use by this process": reading.process_in_use,
        "allocated": reading.allocated,
        "reserved": reading.reserved,
    }
    for name, value in named.items():
        if total is not None and value is not None and value > total + SLACK:
            result.append(
                problem(
                    "above_total",
                    "error",
                    f"{_gib(value)} {name} is more than the device has ({_gib(total)}): the message was altered or merged.",
                    f"{name} {_gib(value)} 超过显存总量 {_gib(total)}：消息被改动或拼接过。",
                )
            )
    held = _sum(reading.free, reading.process_in_use, *others)
    if total is not None and not result and held > total + SLACK:
        result.append(
            problem(
                "parts_exceed_total",
                "error",
                f"Free and used memory add up to {_gib(held)}, more than the {_gib(total)} of the device: two "
                "messages may be mixed.",
                f"空闲与已用之和为 {_gib(held)}，超过总量 {_gib(total)}：可能混入了两条消息。",
            )
        )
    own, reserved = reading.process_in_use, reading.reserved
    if own is not None and reserved is not None and reserved > own + SLACK:
        result.append(
            problem(
                "reserved_above_process",
                "warning",
                f"PyTorch reserves {_gib(reserved)}, more than the {_gib(own)} the process is said to use; one "
                "figure is not its own.",
                f"PyTorch 保留 {_gib(reserved)}，多于该进程的 {_gib(own)}；其中一个数字不属于它。",
            )
        )
    if reading.allocated is not None and reserved is not None and reading.allocated > reserved + SLACK:
        result.append(
            problem(
                "allocated_above_reserved",
                "error",
                f"{_gib(reading.allocated)} allocated is more than {_gib(reserved)} reserved, which cannot be.",
                f"已分配 {_gib(reading.allocated)} 大于保留 {_gib(reserved)}，不可能成立。",
            )
        )
    return result


def _holders(reading: OomReading) -> list[Problem]:
    """Memory that is not this process's to free."""
    others = [one["gib"] for one in reading.other_processes or ()]
    foreign = _sum(*others) if others else None
    if foreign is not None and foreign > Q(1.0, unit("GiB")):
        return [
            problem(
                "other_processes",
                "warning",
                f"Other processes hold {_gib(foreign)} of this GPU: free it first (nvidia-smi shows them); this is "
                "no sizing problem yet.",
                f"其他进程占用该 GPU 的 {_gib(foreign)}：请先释放（用 nvidia-smi 查看），暂时还不是规模问题。",
            )
        ]
    outside = reading.outside
    if outside is not None and reading.total is not None and outside > reading.total * 0.05 and outside > Q(1.0, unit("GiB")):
        who_en = (
            "outside this process"
            if reading.process_in_use is not None
            else "outside PyTorch's allocator or by other processes"
        )
        who_zh = "不在本进程内" if reading.process_in_use is not None else "在 PyTorch 分配器之外或由其他进程占用"
        return [
            problem(
                "held_outside",
                "warning",
                f"{_gib(outside)} of this GPU is held {who_en}: look at nvidia-smi for a leftover or a neighbour "
                "before resizing.",
                f"该 GPU 有 {_gib(outside)} {who_zh}：先用 nvidia-smi 查看残留进程或他人任务，再考虑调整规模。",
            )
        ]
    if reading.allowed is not None and reading.format != "mps":
        return [
            problem(
                "capped",
                "info",
                f"The process may use only {_gib(reading.allowed)} (set_per_process_memory_fraction).",
                f"该进程被限制最多使用 {_gib(reading.allowed)}（set_per_process_memory_fraction）。",
            )
        ]
    return []


def _fragmentation(reading: OomReading) -> list[Problem]:
    result = []
    idle, tried = reading.reserved_unallocated, reading.tried
    if idle is not None and tried is not None:
        large = idle > Q(1.0, unit("GiB")) and reading.reserved is not None and idle > reading.reserved * 0.1
        if (idle >= tried and idle > Q(0.5, unit("GiB"))) or large:
            result.append(
                problem(
                    "fragmentation",
                    "warning",
                    f"{_gib(idle)} is reserved by PyTorch but unallocated: memory fragmentation. Set "
                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before changing the plan.",
                    f"PyTorch 保留而未使用的显存有 {_gib(idle)}：显存碎片。先设置 "
                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True，再考虑改方案。",
                )
            )
    beyond = reading.non_pytorch
    if beyond is not None and beyond > Q(3.0, unit("GiB")):
        result.append(
            problem(
                "outside_pytorch",
                "warning",
                f"{_gib(beyond)} of this process is outside PyTorch's allocator (context, NCCL and library buffers, "
                "a second framework); "
                "about 0.5 to 2 GiB is usual.",
                f"本进程有 {_gib(beyond)} 在 PyTorch 分配器之外（上下文、NCCL 与库缓冲、另一框架）；通常约 0.5 至 2 GiB。",
            )
        )
    if reading.free is not None and tried is not None and reading.free > tried + SLACK and reading.allowed is None:
        result.append(
            problem(
                "enough_was_free",
                "warning",
                f"{_gib(reading.free)} was free and only {_gib(tried)} was asked for: another process freed or took "
                "memory meanwhile, "
                "or a limit applies (MIG, container, memory fraction).",
                f"空闲 {_gib(reading.free)}，只申请 {_gib(tried)}：期间其他进程释放或占用了显存，或存在限制（MIG、"
                "容器、显存比例）。",
            )
        )
    if reading.total is not None and tried is not None and tried > reading.total:
        result.append(
            problem(
                "larger_than_device",
                "warning",
                f"One request of {_gib(tried)} is larger than the whole device ({_gib(reading.total)}): shard it, or "
                "shorten the sequence.",
                f"单次申请 {_gib(tried)} 大于整张卡 {_gib(reading.total)}：需要切分，或缩短序列长度。",
            )
        )
    return result


PHASES = {
    "optimizer": (
        "It ran out in the optimizer's first step, when its states are made: ZeRO-1 or higher shards them, an 8-bit "
        "optimizer halves "
        "them twice; ZeRO-2 does not shard the weights.",
        "在优化器首次更新（创建优化器状态）时显存不足：ZeRO-1 及以上会切分状态，8 比特优化器可大幅减小；ZeRO-2 不切分权重。",
    ),
    "loading": (
        "It ran out while loading the weights: load on one rank and shard, or load directly in the target precision.",
        "加载权重时显存不足：改为单进程加载后切分，或直接以目标精度加载。",
    ),
    "loss": (
        "It ran out at the logits: a large vocabulary times the tokens in fp32; a fused loss or a smaller micro "
        "batch removes that peak.",
        "在计算 logits（损失）时显存不足：词表大且以 fp32 保存；使用融合损失或更小的单卡批大小可消除该峰值。",
    ),
    "backward": (
        "It ran out in the backward pass: activations and gradients peak there; gradient checkpointing or a smaller "
        "micro batch helps.",
        "在反向传播时显存不足：激活值与梯度在此达到峰值；可用梯度检查点或更小的单卡批大小。",
    ),
    "saving": (
        "It ran out while saving: the full weights are gathered on one device; save sharded, or gather on the host.",
        "保存时显存不足：完整权重被聚集到一张卡上；改为分片保存，或聚集到主机内存。",
    ),
}


def _phase(reading: OomReading) -> list[Problem]:
    if reading.phase is None:
        return []
    en, zh = PHASES[reading.phase]
    return [problem(f"phase_{reading.phase}", "info", en, zh)]


def _host(reading: OomReading) -> list[Problem]:
    if reading.signal == 9:
        result = problem(
            "host_killed",
            "warning",
            "Signal 9 without a CUDA error is the system's out-of-memory killer: host RAM ran out, not GPU memory. "
            "Offload needs 16 to "
            "18 bytes per parameter plus the load copies of every rank; check dmesg and the container's limit.",
            "没有 CUDA 错误的信号 9 是系统的内存不足杀手：耗尽的是主机内存而不是显存。卸载需要每参数 16 至 18 字节，"
            "再加每个进程的加载副本；"
            "请查看 dmesg 和容器内存限制。",
        )
    else:
        result = problem(
            "host_refused",
            "warning",
            "Host memory was refused: RAM or the container's limit is too small for loading or offload.",
            "主机内存申请被拒：内存或容器限制对加载或卸载来说太小。",
        )
    return [result]
