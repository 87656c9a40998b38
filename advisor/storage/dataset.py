"""The dataset on its way to the GPUs: how large it is, how fast it must be read, what many small files cost, and packing.

Every function takes scalars or arrays that broadcast.

Sources: MLPerf Storage (read per accelerator = batch x sample bytes / step time); the S3 performance guide (requests per
prefix, latency); the storage chapter of ml-engineering (open times on NVMe and Lustre); WebDataset (shard sizes).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from advisor.catalog import constant
from advisor.storage.facts import spread
from advisor.storage.inputs import StorageInputs
from advisor.storage.records import FileAccess, FileSet, Preprocessing, SmallFiles
from advisor.storage.words import both, time_text, time_text_zh
from advisor.trail import Trail
from advisor.units import (
    Bytes,
    Integer,
    Q,
    Quantity,
    Record,
    maximum,
    minimum,
    unit,
    whole,
)

MULTIMODAL = ("image_text", "video")
#: A shorter fetch is not worth a packing step.
WORTH_WAITING = Q(10.0, unit("min"))


@dataclass(frozen=True, kw_only=True)
class DatasetSize(Record):
    """raw_size: what lies there now. size: one epoch as training reads it. files: objects it lies in now.

    sample_rate: samples (documents, images, clips) read per second; sample_size: bytes of one.
    """

    raw_size: Bytes
    size: Bytes
    files: int
    mean_file_size: Bytes
    samples: int
    sample_size: Bytes
    assumptions: tuple[dict, ...] = ()


def read_bandwidth(samples_per_step: Any, sample_size: Quantity, step_time: Quantity) -> Quantity:
    """Bandwidth that feeds a step: samples x bytes / time (MLPerf Storage's required read, at 100 % utilization)."""
    return (samples_per_step * sample_size / step_time).to(unit("GB/s"))


def dataset_size(inputs: StorageInputs, trail: Trail | None = None) -> DatasetSize:
    """How large the data are, from whatever is known of them: tokens, samples, files, raw size.

    Text is stored raw and read as token ids; multimodal data are read as they are stored. What had to be assumed is said.
    """
    trail = trail or Trail()
    assumptions = []
    multimodal = inputs.data_kind in MULTIMODAL
    if multimodal:
        per_sample = inputs.tokens_per_sample or constant(f"storage.{inputs.data_kind}_tokens_per_sample")
        samples = inputs.samples or int(max(1, whole((inputs.tokens / per_sample).m_as(unit("")))))
        if inputs.samples is None and inputs.tokens_per_sample is None:
            assumptions.append(
                {
                    "en": f"A sample is taken as {per_sample.m_as('token'):g} tokens.",
                    "zh": f"按每个样本 {per_sample.m_as('token'):g} 个 token 估算。",
                }
            )
        known = inputs.bytes_per_sample is None and inputs.raw_size is not None
        sample_size = inputs.raw_size / samples if known else inputs.bytes_per_sample
        if sample_size is None:
            sample_size = constant(f"storage.{inputs.data_kind}_bytes_per_sample")
            assumptions.append(
                {
                    "en": f"A sample is taken as {sample_size.m_as('kB'):,.0f} kB.",
                    "zh": f"按每个样本 {sample_size.m_as('kB'):,.0f} kB 估算。",
                }
            )
        size = trail.step("dataset", "samples * sample_size", "", samples=samples, sample_size=sample_size)
        raw = inputs.raw_size or size
    else:
        per_token = inputs.bytes_per_token or constant("storage.pretokenized_bytes_per_token")
        size = trail.step("dataset", "tokens * bytes_per_token", "", tokens=inputs.tokens, bytes_per_token=per_token)
        raw = inputs.raw_size
        if raw is None and inputs.files and inputs.mean_file_size:
            raw = inputs.files * inputs.mean_file_size
        if raw is None and inputs.data_kind == "pretokenized":
            raw = size
        if raw is None:
            each = constant("storage.text_bytes_per_token")
            raw = trail.step("raw_size", "tokens * text", "arxiv-2407.21783", tokens=inputs.tokens, text=each)
            assumptions.append(
                {
                    "en": f"Raw text is taken as {each.m_as('B/token'):g} bytes per token.",
                    "zh": f"原始文本按每 token {each.m_as('B/token'):g} 字节估算。",
                }
            )
        samples = inputs.samples or int(max(1, whole(inputs.tokens.m_as(unit("token")) / inputs.sequence_length)))
        sample_size = size / samples
    if inputs.files:
        files = inputs.files
    elif inputs.mean_file_size is not None:
        files = int(max(1, whole((raw / inputs.mean_file_size).m_as(unit("")))))
    elif multimodal:
        files = samples
    else:
        files = int(max(1, whole((raw / constant("storage.shard_size_target")).m_as(unit("")))))
    return DatasetSize(
        raw_size=raw.to(unit("GB")),
        size=size.to(unit("GB")),
        files=files,
        mean_file_size=(raw / files).to(unit("MB")),
        samples=samples,
        sample_size=sample_size.to(unit("kB")),
        assumptions=tuple(assumptions),
    )


@dataclass(frozen=True, kw_only=True)
class Shards(Record):
    """A packing: number of shards and the size of one."""

    count: Integer
    size: Bytes


def plan_shards(size: Quantity, readers: Any, trail: Trail | None = None) -> Shards:
    """Shards of about 500 MB (100 MB to 1 GB), and at least as many as there are readers.

    With few data both cannot hold: an idle reader costs more than a small shard, so the readers win.
    """
    trail = trail or Trail()
    count = trail.step(
        "shards",
        "maximum(whole(size / target), readers)",
        "webdataset",
        size=size.to(unit("MB")),
        target=constant("storage.shard_size_target"),
        readers=Q(readers, unit("")),
    ).to(unit(""))
    return Shards(count=whole(count.m_as(unit(""))), size=size / count)


def list_and_get(
    objects: Any, size: Quantity, clients: Any, bandwidth: Quantity, get_price: Quantity, put_price: Quantity
) -> tuple[Quantity, Quantity, Quantity, Quantity, Quantity, Quantity]:
    """LIST and GET of every object once: (LIST requests, GET requests, LIST time, GET time, bill, bill of the PUTs).

    LIST pages follow one another at the object latency. GETs wait for the latency (`clients` in parallel), for the request
    rate of a prefix, or for the bandwidth, whichever is longest.
    """
    request = unit("request")
    gets = Q(objects, request)
    lists = whole(gets / constant("storage.list_page").m_as(unit("1/request")))
    latency = constant("storage.object_latency")
    list_time = (lists * latency / Q(1, request)).to(unit("s"))
    by_latency = gets * latency / (clients * Q(1, request))
    get_time = maximum(
        by_latency.to(unit("s")), (gets / constant("storage.object_get_rate")).to(unit("s")), (size / bandwidth).to(unit("s"))
    )
    return lists, gets, list_time, get_time, lists * put_price + gets * get_price, gets * put_price


@functools.lru_cache(maxsize=256)
def open_rates(readers: int) -> dict[str, Quantity]:
    """Files per second that each storage class opens for `readers` processes: their latency, or what the service can."""
    each = Q(1.0, unit("request"))
    rates = {
        "local-nvme": readers * each / constant("storage.nvme_open_time"),
        "parallel-fs": minimum(
            (readers * each / constant("storage.parallel_open_time")).to(unit("request/s")),
            constant("storage.parallel_open_rate"),
        ),
        "nas": minimum(
            (readers * each / constant("storage.nas_open_time")).to(unit("request/s")), constant("storage.nas_open_rate")
        ),
        "object": minimum(
            (readers * each / constant("storage.object_latency")).to(unit("request/s")), constant("storage.object_get_rate")
        ),
    }
    return {name: rate.to(unit("request/s")) for name, rate in rates.items()}


def file_set(
    state: str,
    files: int,
    size: Quantity,
    epoch_time: Quantity,
    readers: int,
    bandwidth: Quantity,
    get_price: Quantity,
    put_price: Quantity,
) -> FileSet:
    """One state of the dataset (loose or packed): what opening its files needs, what each class gives, requests and bill."""
    opens = Q(float(files), unit("request"))
    needed = (opens / epoch_time).to(unit("request/s"))
    lists, gets, list_time, get_time, bill, put_bill = list_and_get(
        float(files), size, readers, bandwidth, get_price, put_price
    )
    needed_rate = needed.m_as(unit("request/s"))
    access = tuple(
        FileAccess(
            storage_class=name,
            offered=rate,
            time_per_epoch=opens / rate,
            starves=bool(rate.m_as(unit("request/s")) < needed_rate),
        )
        for name, rate in open_rates(readers).items()
    )
    return FileSet(
        state=state,
        files=files,
        mean_size=(size / files).to(unit("MB")),
        opens_needed=needed,
        list_requests=lists,
        get_requests=gets,
        list_time=list_time,
        get_time=get_time,
        bill_per_epoch=bill,
        put_bill=put_bill,
        access=access,
    )


def small_files(
    loose_files: int,
    loose_size: Quantity,
    packed_size: Quantity,
    epoch_time: Quantity,
    readers: int,
    bandwidth: Quantity,
    get_price: Quantity,
    put_price: Quantity,
    storage_class: str,
    already_local: bool = False,
    trail: Trail | None = None,
) -> SmallFiles:
    """Before and after packing, and whether it pays on the class of storage that training reads from.

    On a local disk packing gains nothing measurable (172.7 against 173.3 s in rf-detr pull request 1396); over a network it
    decides. Files that are already large stay as they are.
    """
    before = file_set("loose", loose_files, loose_size, epoch_time, readers, bandwidth, get_price, put_price)
    shards = plan_shards(packed_size, readers, trail)
    after = file_set("packed", int(shards.count), packed_size, epoch_time, readers, bandwidth, get_price, put_price)
    worthwhile, reason = _worth_packing(before, after, storage_class, already_local)
    return SmallFiles(before=before, after=after, readers=readers, worthwhile=worthwhile, reason=reason)


def _worth_packing(before: FileSet, after: FileSet, storage_class: str, already_local: bool) -> tuple[bool, dict[str, str]]:
    """Whether packing pays: where opens starve the GPUs, or where fetching loose files takes far longer than shards."""
    if before.files <= 2 * after.files:
        return False, both("The files are large already: packing would not reduce them.", "文件已经足够大，无需再打包。")
    size = f"{before.mean_size.m_as(unit('kB')):,.0f} kB"
    if any(access.starves for access in before.access if access.storage_class == storage_class):
        return True, both(
            f"{before.files:,} files of {size} cannot be opened fast enough and GPUs would wait: pack them into "
            f"{after.files:,} shards.",
            f"{before.files:,} 个平均 {size} 的小文件打开速度跟不上，GPU 会等数据：请打包成 {after.files:,} 个分片。",
        )
    loose, packed = before.list_time + before.get_time, after.list_time + after.get_time
    if not (storage_class == "local-nvme" and already_local) and loose > 2 * packed and loose > WORTH_WAITING:
        return True, both(
            f"Fetching {before.files:,} files of {size} takes {time_text(loose)} in requests alone; {after.files:,} shards "
            f"take {time_text(packed)}.",
            f"读取 {before.files:,} 个平均 {size} 的小文件，仅请求就要 {time_text_zh(loose)}；"
            f"打包成 {after.files:,} 个分片后为 {time_text_zh(packed)}。",
        )
    return False, both(
        "Loose files open fast enough where they are read; packing would gain nothing measurable.",
        "小文件在读取位置打开足够快，打包没有可见收益。",
    )


def preprocessing(raw_size: Quantity, data_kind: str, cores: int) -> Preprocessing:
    """Core-hours of preprocessing and its time on `cores` cores; nothing to do for pre-tokenized data."""
    if data_kind == "pretokenized":
        none = Q(0.0, unit("h"))
        return Preprocessing(core_hours=none, low=none, high=none, cores=cores, time=none, output_rate=Q(0.0, unit("GB/s")))
    row_low, rate, row_high = spread(f"storage.preprocessing_{data_kind}")
    hours = (raw_size / rate).to(unit("h"))
    return Preprocessing(
        core_hours=hours,
        low=(raw_size / row_high).to(unit("h")),
        high=(raw_size / row_low).to(unit("h")),
        cores=cores,
        time=hours / cores,
        output_rate=(rate * cores).to(unit("GB/s")),
    )
