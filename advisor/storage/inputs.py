"""What storage sizing takes: numbers only, what the model, the cluster and the scenario say about data and checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from advisor.units import (
    Bandwidth,
    BandwidthPerNode,
    Bytes,
    BytesPerNode,
    BytesPerParameter,
    BytesPerToken,
    FailureRate,
    Frequency,
    MoneyPerGPUTime,
    Parameters,
    Q,
    Record,
    Time,
    TokenRate,
    Tokens,
    unit,
)

Content = Literal["full_state", "weights", "adapters"]
#: bf16 weights; fp32 master weights and two fp32 moments; fp32 adapters.
WEIGHTS_BYTES = Q(2.0, unit("B / parameter"))
OPTIMIZER_BYTES = Q(12.0, unit("B / parameter"))
ADAPTER_BYTES = Q(4.0, unit("B / parameter"))
DataKind = Literal["text", "pretokenized", "image_text", "video"]


@dataclass(frozen=True, kw_only=True)
class StorageInputs(Record):
    """What storage has to serve. Only the parameter counts, the tokens and the training rate have no default.

    weights_bytes, optimizer_bytes: bytes per parameter that a full state holds (2 + 12 with mixed precision Adam).
    adapter_bytes: bytes of one saved adapter parameter (fp32 in PEFT).
    gpu: catalog name of the card, used only to look up its failure rate; failure_rate overrides it.
    tokens: one epoch; tokens_per_second and training_time are of the whole cluster and the whole run without faults.
    data_kind: raw text, token ids, images with text, or video with text. files and mean_file_size describe the data as it lies
        now; bytes_per_token the data as training reads it; samples, bytes_per_sample and tokens_per_sample multimodal data.
    location: where the raw data lie now, in words: "local" (an own disk or office), "object" (object storage of the training
        region), "other region", "other cloud" or a provider's name, "node" (already on the training machine).
    checkpoint_interval: None chooses it. checkpoint_content: None saves the full state, or the adapters of an adapter method.
    sharded: every rank writes its part; otherwise one process gathers and writes everything.
    target_write_time: the longest a save may take, if the user says so.
    local_nvme: what one machine has; disk: the one disk that all of it has to fit, if there is one; start: its first day.
    as_of: the day whose prices count (ISO); None takes the newest.
    spot_interruption_rate: interruptions of one machine; None takes the catalog's.
    gpu_price: weighs a slow tier's lost GPU-hours against a fast tier's price.
    """

    parameters_total: Parameters
    parameters_trainable: Parameters
    method: Literal["full", "lora", "qlora", "dora"] = "full"
    weights_bytes: BytesPerParameter = WEIGHTS_BYTES
    optimizer_bytes: BytesPerParameter = OPTIMIZER_BYTES
    adapter_bytes: BytesPerParameter = ADAPTER_BYTES
    gpu: str = ""
    gpus: int = 8
    nodes: int = 1
    gpus_per_node: int = 8
    failure_rate: FailureRate | None = None
    tokens: Tokens
    epochs: int = 1
    tokens_per_second: TokenRate
    training_time: Time
    sequence_length: int = 2048
    data_kind: DataKind = "text"
    raw_size: Bytes | None = None
    files: int | None = None
    mean_file_size: Bytes | None = None
    bytes_per_token: BytesPerToken | None = None
    samples: int | None = None
    bytes_per_sample: Bytes | None = None
    tokens_per_sample: Tokens | None = None
    location: str = "local"
    upload_bandwidth: Bandwidth | None = None
    checkpoint_interval: Time | None = None
    keep: int = 3
    asynchronous: bool = True
    checkpoint_content: Content | None = None
    sharded: bool = True
    target_write_time: Time | None = None
    local_nvme: BytesPerNode | None = None
    nvme_read: BandwidthPerNode | None = None
    nvme_write: BandwidthPerNode | None = None
    node_network: BandwidthPerNode | None = None
    disk: Bytes | None = None
    start: str | None = None
    provider: str | None = None
    market: Literal["international", "china"] | None = None
    region: str | None = None
    mode: Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "own"] = "on_demand"
    spot_interruption_rate: Frequency | None = None
    gpu_price: MoneyPerGPUTime | None = None
    as_of: str | None = None
