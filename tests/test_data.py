"""The tables of `data/` hold together: described, sourced, dated, in the right units, plausible and complete."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from advisor import catalog
from advisor.units import Q, registry, unit

DATA = Path(__file__).parents[1] / "data"
PACKAGE = json.loads((DATA / "datapackage.json").read_text(encoding="utf-8"))
RESOURCES = {resource["path"]: resource for resource in PACKAGE["resources"]}
TABLES = sorted(path.relative_to(DATA).as_posix() for path in DATA.rglob("*.csv"))
LONG = [path for path, resource in RESOURCES.items() if "quantities" in resource]
WORDS = ("text", "flag", "date")


def rows(path: str) -> list[dict[str, str]]:
    """The rows of a table, each with as many cells as the header."""
    with (DATA / path).open(encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines)
        header = next(reader)
        return [dict(zip(header, row, strict=True)) for row in reader]


def test_nothing_was_thinned_out():
    """The catalog's size by name: what the notebooks promise to choose from."""
    counted = {
        path: len({row["name"] for row in rows(path)}) for path in ("gpus.csv", "models.csv", "instances.csv", "storage.csv")
    }
    assert counted == {"gpus.csv": 71, "models.csv": 188, "instances.csv": 362, "storage.csv": 73}
    assert len(catalog.switches()) == 18
    assert len(catalog.links()) >= 58
    assert len(catalog.ownership()) == 80
    assert len(catalog.reliability()) == 102
    assert sum(row["quantity"] == "bus_bandwidth" for row in rows("nccl_measured.csv")) == 1022


@pytest.mark.parametrize("path", TABLES)
def test_every_table_is_described_and_every_field_matches(path):
    assert path in RESOURCES, f"{path} has no resource in data/datapackage.json"
    header = list(rows(path)[0])
    assert [field["name"] for field in RESOURCES[path]["schema"]["fields"]] == header


def test_the_package_describes_no_table_that_is_gone():
    assert sorted(RESOURCES) == TABLES
    assert len({resource["name"] for resource in PACKAGE["resources"]}) == len(TABLES)


PARSERS = {"integer": int, "number": float, "string": str}


@pytest.mark.parametrize("path", TABLES)
def test_every_cell_keeps_its_declared_type_and_constraints(path):
    table = rows(path)
    for field in RESOURCES[path]["schema"]["fields"]:
        cells = [row[field["name"]] for row in table]
        rules = field.get("constraints", {})
        assert not (rules.get("required") and "" in cells), f"{path}: {field['name']} is empty somewhere"
        filled = [cell for cell in cells if cell]
        if field["type"] == "date":
            assert all(re.fullmatch(r"20[12]\d-[01]\d-[0-3]\d", cell) for cell in filled), field["name"]
        else:
            for cell in filled:
                PARSERS[field["type"]](cell)
        if "enum" in rules:
            assert set(filled) <= set(rules["enum"]), f"{path}: {field['name']}"
        if rules.get("unique"):
            assert len(set(filled)) == len(filled), f"{path}: {field['name']} repeats {Counter(filled).most_common(1)}"


#: Tables whose `source` is a published report's own label, told in the row with its locator, and no key of sources.csv.
OWN_LABELS = {"throughput.csv", "model_configs.csv"}


@pytest.mark.parametrize("path", sorted(set(TABLES) - OWN_LABELS))
def test_every_source_resolves(path):
    unknown = {row["source"] for row in rows(path) if "source" in row} - set(catalog.sources())
    assert not unknown, f"{path} cites {sorted(unknown)[:5]}, which sources.csv does not have"


@pytest.mark.parametrize("path", LONG)
def test_every_unit_parses_to_the_dimension_of_its_quantity(path):
    quantities = RESOURCES[path]["quantities"]
    for row in rows(path):
        declared = quantities[row["quantity"]]["unit"]
        declared = [declared] if isinstance(declared, str) else declared
        if row["unit"] in WORDS:
            assert declared == [row["unit"]], row
            continue
        dimensions = {registry.get_dimensionality(unit(one)) for one in declared if one not in WORDS}
        assert registry.get_dimensionality(unit(row["unit"])) in dimensions, row
        assert float(row["value"]) == float(row["value"]), row


@pytest.mark.parametrize("path", LONG)
def test_flags_dates_and_texts_are_what_they_say(path):
    for row in rows(path):
        if row["unit"] == "flag":
            assert row["value"] in ("yes", "no"), row
        if row["unit"] == "date":
            assert re.fullmatch(r"20[012]\d-[01]\d-[0-3]\d", row["value"]), row


@pytest.mark.parametrize("path", ["ownership.csv", "reliability.csv"])
def test_units_of_ranges_parse_and_the_value_lies_in_its_range(path):
    for row in rows(path):
        if row["unit"] == "text":
            continue
        unit(row["unit"])
        value, low, high = (float(row[name]) if row[name] else None for name in ("value", "low", "high"))
        assert low is None or high is None or low <= high, row
        assert value is None or low is None or low <= value, row
        assert value is None or high is None or value <= high, row


@pytest.mark.parametrize("path", [path for path in TABLES if path.startswith("constants/")])
def test_constants_parse_and_lie_in_their_range(path):
    for row in rows(path):
        key = f"{Path(path).stem}.{row['key'].removeprefix(Path(path).stem + '.')}"
        low, value, high = catalog.constant_range(key)
        assert low <= value <= high, row
        assert row["explanation"], row


@pytest.mark.parametrize("path", ["instance_prices.csv", "storage_prices.csv"])
def test_prices_are_above_zero_or_said_to_be_free(path):
    free = {"egress_same_region", "retrieval"}
    for row in rows(path):
        included = row["quantity"] in free or "included" in row["note"]
        assert float(row["value"]) > 0 or (float(row["value"]) == 0 and included), row
        assert row["unit"].startswith(("USD", "CNY")), row


def test_a_price_has_its_machine_and_a_machine_one_currency():
    machines = {one.name: one for one in catalog.instances()}
    for row in rows("instance_prices.csv"):
        assert row["unit"].startswith(machines[row["name"]].currency), row
    products = {one.name: one for one in catalog.storage_products()}
    for row in rows("storage_prices.csv"):
        assert row["unit"].startswith(products[row["name"]].currency), row


def test_prices_of_one_machine_are_in_order():
    """A longer commitment is not dearer, and a whole machine costs 0.05 to 30 USD or 0.5 to 60 CNY a card and hour."""
    for one in catalog.instances():
        if one.reserved_1y is not None and one.on_demand is not None:
            assert one.reserved_1y <= one.on_demand, one.name
        if one.reserved_3y is not None and one.reserved_1y is not None:
            assert one.reserved_3y <= one.reserved_1y, one.name
        if one.on_demand is not None and one.gpus:
            price = one.on_demand.m_as(f"{one.currency} / h") / one.gpus
            low, high = (0.05, 30) if one.currency == "USD" else (0.5, 60)
            assert low < price < high, (one.name, price)


@pytest.mark.parametrize("path", sorted(set(LONG) - {"nccl_measured.csv"}))
def test_tables_grow_by_appending(path):
    """Of one quantity of one name there is one value a day: a later value is a further row with its own date."""
    counted = Counter((row["name"], row["quantity"], row["as_of"]) for row in rows(path))
    assert max(counted.values()) == 1, counted.most_common(1)


def test_names_are_unique_however_they_are_written():
    for known in (catalog.gpus(), catalog.links(), catalog.models(), catalog.storage_products(), catalog.switches()):
        spelled = Counter(one.name.lower() for one in known)
        assert max(spelled.values()) == 1, spelled.most_common(1)
    ids = Counter(model.hf_id for model in catalog.models() if model.hf_id)
    assert max(ids.values()) == 1, ids.most_common(1)


def test_every_alias_leads_to_a_known_name():
    known = {
        "gpus": {one.name for one in catalog.gpus()},
        "models": {one.name for one in catalog.models()},
        "links": {one.name for one in catalog.links()},
    }
    look_up = {"gpus": catalog.gpu, "models": catalog.model, "links": catalog.link}
    for row in rows("aliases.csv"):
        assert row["name"] in known[row["table"]], row
        assert look_up[row["table"]](row["alias"]).name == row["name"], row


IDENTITY = ("vendor", "segment", "memory", "capacity", "memory_bandwidth", "scale_up", "launch_year", "supports_bf16")
TOGETHER = (("bridge", "bridge_gpus"), ("pcie_generation", "pcie_lanes"))


@pytest.mark.parametrize("gpu", catalog.gpus(), ids=lambda gpu: gpu.name)
def test_the_fields_of_a_card_are_all_there_or_none(gpu):
    known = catalog.facts("gpus.csv", gpu.name)
    assert set(IDENTITY) <= set(known)
    for group in TOGETHER:
        assert len({field in known for field in group}) == 1, group
    assert "nvlink" not in known or "nvlink_generation" in known
    for precision in ("bf16", "fp8", "fp4"):
        if known[f"supports_{precision}"].value == "no":
            assert precision not in known, f"{gpu.name} has no {precision} units but a rate"
    assert gpu.bf16 is None or gpu.supports_bf16


#: Rate over the dense bf16 rate: matrix units halve or double from one precision to the next.
RATIOS = {"fp16": (1.0, 1.01), "tf32": (0.45, 0.56), "fp8": (1.9, 2.05), "int8": (1.9, 2.05), "fp4": (3.6, 6.7)}
#: Cards that differ by design, and how. GeForce bf16 rates are for fp32 accumulation, which halves them and not int8.
ODD = {
    **{(name, "int8"): 4 for name in ("GeForce RTX 3090", "GeForce RTX 3090 Ti", "GeForce RTX 4090", "GeForce RTX 4090 D")},
    ("GeForce RTX 5090", "int8"): 4,
    ("GeForce RTX 5090", "fp4"): 8,
    ("MI100", "fp16"): 2,  # bf16 at half the fp16 rate
    ("MI100", "int8"): 2,
    ("MI210", "int8"): 1,  # CDNA2 runs int8 at the 16-bit rate
    ("MI250", "int8"): 1,
    ("MI250X", "int8"): 1,
    ("Gaudi3", "fp16"): 459 / 1677,  # its fp8 and bf16 come from the same engine, fp16 and tf32 do not
    ("Gaudi3", "tf32"): 459 / 1677,
    ("Gaudi3", "fp8"): 1,
    ("Ascend 950DT", "fp8"): 919 / 486,
    ("Cambricon MLU370-X8", "int8"): 256 / 96,
    ("Trainium2", "tf32"): 1,
}


@pytest.mark.parametrize("gpu", [gpu for gpu in catalog.gpus() if gpu.bf16 is not None], ids=lambda gpu: gpu.name)
def test_rates_of_precisions_stand_in_plausible_ratios(gpu):
    for precision, (low, high) in RATIOS.items():
        rate = getattr(gpu, precision)
        if rate is None:
            continue
        ratio = (rate / gpu.bf16).m_as("")
        if (gpu.name, precision) in ODD:
            assert ratio == pytest.approx(ODD[gpu.name, precision], rel=0.01), precision
        else:
            assert low <= ratio <= high, (precision, rate, gpu.bf16)
    if gpu.measured_bf16 is not None:
        assert 0.5 <= (gpu.measured_bf16 / gpu.bf16).m_as("") <= 1
    if gpu.fp32 is not None:
        assert gpu.fp32 <= gpu.bf16


@pytest.mark.parametrize("gpu", catalog.gpus(), ids=lambda gpu: gpu.name)
def test_capacity_is_a_little_less_than_the_label_read_in_gib(gpu):
    """Driver, ECC and spare rows take up to 7 %: 46 068 of 49 152 MiB on an L40S with inline ECC, 15 360 of 16 384 on a T4."""
    label = Q(gpu.memory.m_as("GB"), "GiB / GPU")  # label "GB" read as GiB
    assert 0.92 <= (gpu.capacity / label).m_as("") <= 1.0


def test_cards_of_a_machine_have_the_memory_that_the_provider_states():
    """All three of card, number and memory stand or fall together, and memory = number x the card's label, within 10 %."""
    for one in catalog.instances():
        if not one.gpu or one.gpu_memory is None:
            continue
        assert one.gpus, one.name
        stated = one.gpu_memory / one.gpus
        assert 0.9 <= (stated / catalog.gpu(one.gpu).memory).m_as("") <= 1.1, (one.name, stated)


def test_every_card_named_in_a_table_is_in_the_catalog():
    known = {gpu.name for gpu in catalog.gpus()} | {""}
    for path in ("ownership.csv", "reliability.csv", "nccl_measured.csv"):
        assert {row["gpu"] for row in rows(path)} <= known, path
    assert {one.gpu for one in catalog.instances()} <= known


def test_a_measured_collective_does_not_beat_physics_within_a_node():
    """Bus bandwidth in one node stays below the links' one-way rate; in-network reduction may pass it by up to 10 %."""
    rate = {gpu.name: catalog.link(gpu.scale_up).line_rate for gpu in catalog.gpus()}
    for one in catalog.collective_readings():
        if one.quantity == "bus_bandwidth" and one.nodes == 1 and one.gpu and "bridge" not in one.intra_node.lower():
            measured = one.value.m_as("GB / s")
            assert measured <= 1.1 * rate[one.gpu].m_as("GB / s / GPU"), (
                one.system,
                one.collective,
                one.message_size,
                measured,
            )


@pytest.mark.parametrize("entry", catalog.models(), ids=lambda entry: entry.name)
def test_parameters_counted_from_the_architecture_agree_with_the_stated_count(entry):
    from advisor.architecture import catalog_architecture

    architecture = catalog_architecture(entry.name)
    assert round(architecture.parameters_total.m_as("parameter")) == entry.parameters_total
    if entry.parameters_active is not None:  # stated to four digits; gpt-oss is stated with its idle experts' biases
        assert architecture.parameters_active.m_as("parameter") == pytest.approx(entry.parameters_active, rel=0.01)


def test_copied_tables_carry_their_notice():
    copied = {row["source"] for row in rows("nccl_measured.csv") if row["source"].startswith("aiconfigurator")}
    notice = (DATA / "NOTICE").read_text(encoding="utf-8")
    assert len(copied) == 1
    for key in copied:
        assert key in notice
        assert catalog.source(key).licence == "Apache-2.0"
        assert sum(row["source"] == key and row["quantity"] == "bus_bandwidth" for row in rows("nccl_measured.csv")) == 900


def test_what_was_recalled_or_conflicts_is_not_called_sure():
    """A source known from memory alone never carries high confidence, and a conflict of sources is marked where it is read."""
    for path in ("gpus.csv", "links.csv", "storage_prices.csv", "switches.csv"):
        for row in rows(path):
            title = catalog.source(row["source"]).title
            if title.endswith("as recalled") and ";" not in title:
                assert row["confidence"] != "high", row
    assert catalog.fact("gpus.csv", "RTX PRO 6000 Blackwell Server", "memory_bandwidth").confidence == "low"
    china = [one for one in catalog.instances() if one.market == "china" and one.provider.startswith(("Tencent", "Baidu"))]
    assert china
    assert all(one.confidence == "low" for one in china if one.on_demand is not None)


def test_the_tables_speak_of_their_subject_only():
    """No address of a package registry and no path of a machine stands in a table."""
    words = re.compile(r"py" r"pi\.|conda\.anaconda|registry\.npm|/work/|/home/|/root/|/tmp/")  # split so that it is no mention
    for path in TABLES:
        found = words.search((DATA / path).read_text(encoding="utf-8"))
        assert not found, f"{path}: {found.group()}"
