"""The catalog: names in any spelling, records with units, prices as of a date, constants, and clear refusals."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from advisor import catalog
from advisor.catalog import tables
from advisor.units import Q, UnitError

ROOT = Path(__file__).parents[1]

GPU_SPELLINGS = {
    "h100": "H100 SXM5 80GB",
    "H100-80GB": "H100 SXM5 80GB",
    "h100_sxm": "H100 SXM5 80GB",
    "NVIDIA H100 80GB HBM3": "H100 SXM5 80GB",
    "NVIDIA H100 PCIe": "H100 PCIe 80GB",
    "H100 NVL": "H100 NVL 94GB",
    "a100": "A100 SXM4 80GB",
    "A100-40GB": "A100 SXM4 40GB",
    "NVIDIA A100-SXM4-40GB": "A100 SXM4 40GB",
    "A100-80": "A100 SXM4 80GB",
    "A100-PCIE-40GB": "A100 PCIe 40GB",
    "a100 pcie": "A100 PCIe 80GB",
    "4090": "GeForce RTX 4090",
    "RTX4090": "GeForce RTX 4090",
    "rtx4090d": "GeForce RTX 4090 D",
    "3090ti": "GeForce RTX 3090 Ti",
    "L40S": "L40S",
    "l40s": "L40S",
    "a10": "A10",
    "A10G": "A10G",
    "Tesla T4": "T4",
    "Tesla V100-SXM2-32GB": "V100 SXM2 32GB",
    "V100": "V100 SXM2 16GB",
    "H20": "H20 96GB",
    "H20-141GB": "H20 141GB",
    "NVIDIA GH200 480GB": "GH200 96GB",
    "gb200": "GB200 (per GPU)",
    "NVIDIA B300 SXM6 AC": "B300 SXM 288GB",
    "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada",
    "RTX PRO 6000": "RTX PRO 6000 Blackwell Server",
    "MI300X": "MI300X",
    "AMD Instinct MI250X": "MI250X",
    "910B": "Ascend 910B1/B2 64GB",
    "昇腾910B": "Ascend 910B1/B2 64GB",
    "华为昇腾 910C": "Ascend 910C 128GB",
    "寒武纪 MLU370-X8": "Cambricon MLU370-X8",
    "Ｈ１００": "H100 SXM5 80GB",
}
MODEL_SPELLINGS = {
    "llama-3.1-8b": "Llama 3.1 8B",
    "Llama-3.1-8B-Instruct": "Llama 3.1 8B",
    "meta-llama/Llama-3.1-8B": "Llama 3.1 8B",
    "meta-llama/Meta-Llama-3.1-8B-Instruct": "Llama 3.1 8B",
    "llama3-8b": "Llama 3 8B",
    "Llama-2-7b-hf": "Llama 2 7B",
    "qwen2.5-7b": "Qwen2.5 7B",
    "Qwen/Qwen2.5-7B-Instruct": "Qwen2.5 7B",
    "qwen3-30b": "Qwen3 30B-A3B",
    "mistralai/Mixtral-8x7B-Instruct-v0.1": "Mixtral 8x7B",
    "google/gemma-2-9b-it": "Gemma 2 9B",
    "bloom-7b1": "BLOOM 7.1B",
    "gpt2": "GPT-2 124M",
    "internlm/internlm2-1_8b": "InternLM2 1.8B",
    "DeepSeek-V2-Lite": "DeepSeek-V2-Lite 16B",
    "deepseek-v3": "DeepSeek-V3 671B",
    "通义千问2.5-7B": "Qwen2.5 7B",
}
LINK_SPELLINGS = {
    "InfiniBand NDR": "InfiniBand NDR 4x",
    "400G InfiniBand": "InfiniBand NDR 4x",
    "hdr": "InfiniBand HDR 4x",
    "400G RoCE": "RoCEv2 400G",
    "RoCE v2 100G": "RoCEv2 100G",
    "25GbE": "Ethernet 25G TCP",
    "100 GbE TCP": "Ethernet 100G TCP",
    "EFA v3": "EFA v3 (AWS P5en)",
    "PCIe Gen5": "PCIe 5.0 x16",
    "nvlink4": "NVLink 4 + NVSwitch (H100/H200/H20 SXM)",
}


@pytest.mark.parametrize(("asked", "name"), GPU_SPELLINGS.items())
def test_a_card_is_found_in_any_spelling(asked, name):
    assert catalog.gpu(asked).name == name


@pytest.mark.parametrize(("asked", "name"), MODEL_SPELLINGS.items())
def test_a_model_is_found_in_any_spelling(asked, name):
    assert catalog.model(asked).name == name


@pytest.mark.parametrize(("asked", "name"), LINK_SPELLINGS.items())
def test_a_link_is_found_in_any_spelling(asked, name):
    assert catalog.link(asked).name == name


def test_every_name_and_hugging_face_id_finds_itself():
    assert all(catalog.gpu(gpu.name.lower().replace(" ", "-")) is catalog.gpu(gpu.name) for gpu in catalog.gpus())
    assert all(catalog.link(link.name.upper()) is catalog.link(link.name) for link in catalog.links())
    for model in catalog.models():
        assert catalog.model(model.name.lower().replace(" ", "-")) is model
        assert not model.hf_id or catalog.model(model.hf_id) is model
        assert not model.hf_id or catalog.model(model.hf_id.lower()) is model


@pytest.mark.parametrize("asked", ["P100", "h900", "rtx", "80", "nvidia", "", "  ", "x" * 300])
def test_an_unknown_card_is_refused_in_one_sentence(asked):
    with pytest.raises(catalog.CatalogError) as refused:
        catalog.gpu(asked)
    assert str(refused.value).startswith(f"GPU {asked!r} is not in the catalog; ")
    assert str(refused.value).count("\n") == 0


def test_the_refusal_names_the_nearest_known_name():
    with pytest.raises(catalog.CatalogError, match="nearest known name is 'GeForce RTX 5090'"):
        catalog.gpu("RTX 5095")
    with pytest.raises(catalog.CatalogError, match="nearest known name is 'InfiniBand NDR 4x'"):
        catalog.link("InfiniBandNDR8")
    with pytest.raises(catalog.CatalogError, match="nearest known name is 'Qwen3 32B'"):
        catalog.model("qwen3-33b")


def test_a_model_name_that_can_mean_several_says_which():
    with pytest.raises(catalog.CatalogError, match=r"can mean several models.*Llama 2 70B or Llama 3 70B"):
        catalog.model("llama-70b")


def test_capacity_is_what_the_driver_reports_and_not_the_label():
    """An H100 of "80 GB" reports 81 559 MiB = 85.52 GB; a T4 of "16 GB" 15 360 MiB = 15 GiB, less than a 15.96 GiB need."""
    h100, t4 = catalog.gpu("h100"), catalog.gpu("t4")
    assert h100.capacity.m_as("MiB / GPU") == 81559
    assert h100.capacity.m_as("GB / GPU") == pytest.approx(85.52, abs=0.01)
    assert h100.memory == Q(80, "GB")
    assert t4.capacity == Q(15, "GiB / GPU")
    assert t4.capacity < Q(15.96, "GiB / GPU")
    assert catalog.gpu("TPU v7x").capacity_confidence == "low"


def test_h100_figures_of_its_datasheet():
    """NVIDIA H100 datasheet, SXM column: half of the sparse figures; 3.35 TB/s; NVLink 900 GB/s; 700 W."""
    gpu = catalog.gpu("h100")
    assert gpu.bf16.m_as("TFLOP / s / GPU") == pytest.approx(1979 / 2, rel=1e-3)
    assert gpu.fp8.m_as("TFLOP / s / GPU") == pytest.approx(3958 / 2, rel=1e-3)
    assert gpu.memory_bandwidth == Q(3.35, "TB / s / GPU")
    assert gpu.nvlink == Q(900, "GB / s / GPU")
    assert gpu.power == Q(700, "W")


def test_each_card_knows_the_link_inside_its_node():
    assert catalog.link(catalog.gpu("a100").scale_up).kind == "NVLink"
    assert catalog.gpu("4090").scale_up == "PCIe 4.0 x16"
    pair = catalog.gpu("A100 PCIe 80GB")
    assert pair.scale_up == "PCIe 4.0 x16"
    assert (catalog.link(pair.bridge).kind, pair.bridge_gpus) == ("NVLink", 2)
    for gpu in catalog.gpus():
        assert catalog.link(gpu.scale_up).scope == "scale_up"
        assert gpu.bridge is None or catalog.link(gpu.bridge).scope == "scale_up"


def test_a_fabric_has_a_line_rate_per_port_and_a_link_one_per_card():
    ndr, nvlink = catalog.link("InfiniBand NDR"), catalog.link("nvlink 4")
    assert (ndr.scope, ndr.rdma, ndr.line_rate) == ("scale_out", True, Q(50, "GB / s"))
    assert ndr.node_line_rate == Q(400, "GB / s / node")
    assert ndr.node_bus_bandwidth < ndr.node_line_rate
    assert (nvlink.scope, nvlink.line_rate) == ("scale_up", Q(450, "GB / s / GPU"))
    assert catalog.link("25GbE").rdma is False
    assert catalog.link("GPUDirect-TCPX (GCP A3 High)").rdma is False


def test_a_wrong_unit_is_refused_with_record_and_field():
    with pytest.raises(UnitError, match=r"GPU\.memory needs .*GB.*but was given"):
        dataclasses.replace(catalog.gpu("t4"), memory=Q(16, "s"))
    with pytest.raises(UnitError, match=r"Link\.line_rate needs"):
        dataclasses.replace(catalog.link("ndr"), line_rate=Q(400, "GB"))


def test_model_integers_are_plain_and_the_exact_count_is_kept():
    """Llama-2-7B has 6 738 415 616 parameters and Llama-3.1-8B 8 030 261 248 (sums over the published tensors)."""
    assert catalog.model("llama-2-7b").parameters_total == 6_738_415_616
    llama = catalog.model("llama-3.1-8b")
    assert llama.parameters_total == 8_030_261_248
    assert (llama.num_layers, llama.hidden_size, llama.num_key_value_heads, llama.head_dim) == (32, 4096, 8, 128)
    assert llama.num_experts is None
    assert llama.tie_word_embeddings is False
    deepseek = catalog.model("deepseek-v3")
    assert (deepseek.num_experts, deepseek.num_experts_per_token, deepseek.mla_kv_lora_rank) == (256, 8, 512)
    assert deepseek.parameters_active < 0.06 * deepseek.parameters_total


def test_an_instance_price_is_of_the_whole_machine():
    p5 = next(one for one in catalog.instances() if one.instance_type == "p5.48xlarge" and one.region == "us-east-1")
    assert (p5.gpus, p5.gpu, p5.rdma_kind) == (8, "H100 SXM5 80GB", "EFA v2")
    assert Q(20, "USD / h") < p5.on_demand < Q(110, "USD / h")
    assert p5.network == Q(3200, "Gbit / s")


def test_a_monthly_lease_in_yuan_stays_in_yuan():
    lease = next(one for one in catalog.instances() if "omniyq" in one.provider and one.gpu == "A100 SXM4 80GB")
    assert (lease.monthly, lease.currency) == (Q(25000, "CNY"), "CNY")
    assert not lease.on_demand.check("[currency_usd] / [time]")
    assert "export rules" in lease.market_note


def test_an_s3_price_by_hand():
    """One TB for one month of S3 Standard: 1000 GB x 0.023 USD = 23 USD; a million GETs: 0.40 USD."""
    s3 = next(one for one in catalog.storage_products() if one.name == "AWS: S3 Standard")
    assert (s3.capacity_price * Q(1, "TB") * Q(1, "month")).m_as("USD") == pytest.approx(23.0)
    assert (s3.get_price * Q(1e6, "request")).m_as("USD") == pytest.approx(0.40)


def test_experience_keeps_range_unit_and_confidence():
    unexpected = next(one for one in catalog.reliability() if one.metric == "interruptions, unexpected")
    assert unexpected.value == Q(419, "")
    rate = unexpected.value / (unexpected.cluster_nodes * Q(1, "node")) / unexpected.duration
    assert rate.m_as("1 / node / day") == pytest.approx(unexpected.failures_per_node.m_as("1 / node / day"), rel=0.01)
    pue = next(one for one in catalog.ownership() if one.item == "PUE, modern AI data centre")
    assert pue.low < pue.value < pue.high
    switch = next(one for one in catalog.switches() if one.name.startswith("Quantum-2 QM9700"))
    assert switch.endpoints_two_tier == switch.ports**2 // 2


def test_a_fact_says_where_it_comes_from():
    fact = catalog.fact("gpus.csv", "B300 SXM 288GB", "fp4")
    assert fact.confidence == "low"
    assert "disagree" in fact.note
    assert catalog.source(fact.source).title
    with pytest.raises(catalog.CatalogError, match=r"has no fp16x in data/gpus.csv; the nearest known is 'fp16'"):
        catalog.fact("gpus.csv", "T4", "fp16x")


def test_unknown_source_table_and_constant_are_refused_with_the_nearest():
    with pytest.raises(catalog.CatalogError, match="source 'pci-sigg' is not in the catalog"):
        catalog.source("pci-sigg")
    with pytest.raises(catalog.CatalogError, match=r"no table 'gpu.csv' in data/; the nearest known is 'gpus.csv'"):
        catalog.table("gpu.csv")
    with pytest.raises(catalog.CatalogError, match="stage of constants 'memry'"):
        catalog.constant("memry.cuda_context")


HEADER = "name,quantity,value,unit,source,as_of,as_of_precision,confidence,note\n"


@pytest.fixture
def small_data(tmp_path, monkeypatch):
    """A data folder of a test's own, with the caches cleared before and after."""
    cached = (tables._facts, tables._rows, tables._constants, tables.constant_row, tables.constant, tables.constant_range)

    def clear():
        for function in cached:
            function.cache_clear()

    monkeypatch.setattr(tables, "data_folder", lambda: tmp_path)
    clear()
    yield tmp_path
    clear()


def test_prices_are_read_as_of_a_date(small_data):
    """A price is never changed but a newer one appended: May still reads 2.0 when July says 3.0, whatever the order of rows."""
    rows = ["box,on_demand,3.0,USD / h,s,2026-07-01,day,high,", "box,on_demand,2.0,USD / h,s,2026-03-01,day,high,"]
    (small_data / "prices.csv").write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")
    assert catalog.facts("prices.csv", "box")["on_demand"].read() == Q(3, "USD / h")
    assert catalog.facts("prices.csv", "box", "2026-05-01")["on_demand"].read() == Q(2, "USD / h")
    assert catalog.facts("prices.csv", "box", "2026-07-01")["on_demand"].read() == Q(3, "USD / h")
    assert catalog.facts("prices.csv", "box", "2025-01-01") == {}


def test_constants_with_their_range(small_data):
    (small_data / "constants").mkdir()
    (small_data / "constants" / "memory.csv").write_text(
        "key,value,low,high,unit,source,as_of,confidence,explanation\n"
        "cuda_context,0.7,0.5,0.9,GiB / GPU,s,2026-11-30,medium,context\n"
        "memory.margin,1.05,,,,s,2026-11-30,low,prefixed keys work as well\n",
        encoding="utf-8",
    )
    assert catalog.constant("memory.cuda_context") == Q(0.7, "GiB / GPU")
    assert [bound.m_as("GiB / GPU") for bound in catalog.constant_range("memory.cuda_context")] == [0.5, 0.7, 0.9]
    assert catalog.constant_range("memory.margin") == (Q(1.05, ""),) * 3
    assert catalog.constant_row("memory.margin")["confidence"] == "low"
    with pytest.raises(catalog.CatalogError, match=r"nearest known name is 'memory.cuda_context'"):
        catalog.constant("memory.cuda_contxt")


def test_an_old_date_hides_later_prices_of_real_machines():
    now, before = catalog.instances(), catalog.instances("2024-12-31")
    assert len(now) == len(before)
    assert 0 < sum(one.on_demand is not None for one in before) < sum(one.on_demand is not None for one in now)
    assert all(one.as_of <= "2024-12-31" for one in before if one.on_demand is not None)


def test_nearest_ignores_case_and_punctuation():
    assert catalog.nearest("full-finetune", ["full", "lora", "qlora"]) == "full"
    assert catalog.nearest("QLoRa", ["lora", "qlora"]) == "qlora"
    assert catalog.nearest("zzz", ["lora", "qlora"]) is None


def test_data_are_found_inside_an_installed_package(tmp_path):
    """A wheel carries data/ inside the package, where a checkout has it beside the package."""
    package = tmp_path / "advisor"
    shutil.copytree(ROOT / "advisor", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").write_text("", encoding="utf-8")  # the catalog alone, without the rooms above it
    shutil.copytree(ROOT / "data", package / "data")
    code = "from advisor import catalog; print(catalog.data_folder(), catalog.gpu('h100').name)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1) == [str(package / "data"), "H100 SXM5 80GB\n"]


def test_the_catalog_reads_nothing_when_imported():
    code = "from advisor import catalog; from advisor.catalog import tables; print(tables._facts.cache_info().misses)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
