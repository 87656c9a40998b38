"""The user's price file, and newer prices brought into it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.budget import refresh as fresh
from advisor.budget.quotes import read_quotes, write_quotes
from advisor.units import Q

DAY = "2026-11-30"
GOOD = """provider,gpu,gpus,per,mode,price,currency,as_of
CoreWeave,h100,8,instance,on_demand,40,USD,2026-11-01
,4090,1,GPU,spot,1.5,CNY,2026-11-02
"""
CHINESE = """厂商,卡型,卡数,计价单位,计费方式,单价,计费周期,币种,报价日期
某云,A100-80,8,整机,按量付费,"25,000",月,元,2026-11-20
"""


def test_a_file_of_quotes():
    told = read_quotes(GOOD)
    assert told.problems == ()
    machine, card = told.quotes
    assert (machine.gpu, machine.per, machine.gpus) == ("H100 SXM5 80GB", "instance", 8)
    assert machine.price.m_as("USD/h") == 40
    assert (card.provider, card.mode) == ("your quote", "spot")
    assert card.price.m_as("CNY/h") == 1.5


@pytest.mark.parametrize("code", ["utf-8", "utf-8-sig", "gb18030"])
def test_a_chinese_file_as_spreadsheets_write_it(code):
    told = read_quotes(CHINESE.encode(code))
    assert told.problems == ()
    (quote,) = told.quotes
    assert (quote.per, quote.mode, quote.provider) == ("instance", "on_demand", "某云")
    # 25 000 CNY a month of 730 hours, and a month at least.
    assert quote.price.m_as("CNY/h") == pytest.approx(25_000 / 730)
    assert quote.minimum_time == Q(730, "h")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("x,h100,8,instance,on_demand,forty,USD,2026-11-01", "price must be a number"),
        ("x,h100,8,instance,on_demand,40,EUR,2026-11-01", "currency must be one of USD, CNY"),
        ("x,h100,8,rack,on_demand,40,USD,2026-11-01", "per must be one of GPU, instance"),
        ("x,h100,8,instance,rented,40,USD,2026-11-01", "mode must be one of"),
        ("x,h100,8,instance,on_demand,40,USD,01/11/2026", "must be a date"),
        ("x,h100,8,instance,on_demand,0,USD,2026-11-01", "must be above zero"),
        ("x,h101,8,instance,on_demand,40,USD,2026-11-01", "h101"),
        ("x,h100,,instance,on_demand,40,USD,2026-11-01", "number of cards"),
        ("x,h100,1.5,GPU,on_demand,40,USD,2026-11-01", "whole number"),
    ],
)
def test_one_sentence_per_problem_and_the_good_rows_stay(row, said):
    told = read_quotes(GOOD + row + "\n")
    assert len(told.quotes) == 2
    (problem,) = told.problems
    assert problem["en"].startswith("Row 4: ")
    assert said in problem["en"]
    assert problem["zh"].startswith("第 4 行")


def test_a_file_without_the_needed_columns():
    (problem,) = read_quotes("card,cost\nh100,3\n").problems
    assert "missing: price, currency, per, as_of" in problem["en"]
    assert read_quotes("").problems[0]["en"] == "The file is empty."
    assert "Column 'colour'" in read_quotes("gpu,price,currency,per,as_of,colour\n").problems[0]["en"]


def test_written_and_read_again():
    quotes = read_quotes(GOOD + CHINESE.split("\n")[0].replace("厂商", "x")).quotes
    assert read_quotes(write_quotes(quotes)).quotes == quotes


@given(st.text(max_size=300) | st.binary(max_size=300))
def test_nothing_in_a_file_makes_the_reader_fail(content):
    told = read_quotes(content)
    assert told.quotes or told.problems or not told.quotes


def item(**changed):
    """An offer as gpuhunt gives it: price of the whole machine in USD per hour."""
    plain = {
        "provider": "aws", "instance_name": "p5.48xlarge", "location": "us-east-1", "price": 50.0, "gpu_count": 8,
        "gpu_name": "H100", "gpu_memory": 80.0, "spot": False,
    }  # fmt: skip
    return SimpleNamespace(**(plain | changed))


ITEMS = [
    item(),
    item(location="us-west-2", price=60.0),
    item(spot=True, price=15.0),
    item(provider="nebius", instance_name="new-machine", gpu_name="L40S", gpu_memory=48.0, gpu_count=1, price=1.5),
    item(gpu_name="NoSuchCard", instance_name="unknown"),
]


def test_the_difference_is_shown_before_it_is_taken(tmp_path):
    file, said = tmp_path / "folder" / "prices.csv", []
    taken = fresh.refresh(file, accept=lambda: False, day=DAY, fetch=lambda _: ITEMS, show=said.append)
    assert not taken
    assert not file.exists()
    # p5.48xlarge was 55.04 USD on 2026-07-20.
    assert any("AWS p5.48xlarge on_demand: 55.04 -> 50 USD/h (-9%)" in line for line in said)
    assert any("1 left out" in line for line in said)
    assert said[-1] == "Nothing was written."


def test_taken_prices_are_read_as_the_users_and_older_days_stay(tmp_path):
    file = tmp_path / "prices.csv"
    assert fresh.refresh(file, accept=lambda: True, day="2026-11-01", fetch=lambda _: ITEMS, show=lambda _: None)
    cheaper = [item(price=45.0)]
    assert fresh.refresh(file, accept=lambda: True, day=DAY, fetch=lambda _: cheaper, show=lambda _: None)
    quotes = fresh.user_quotes(file)
    prices = {one.as_of: one.price.m_as("USD/h") for one in quotes if (one.instance, one.mode) == ("p5.48xlarge", "on_demand")}
    assert prices == {"2026-11-01": 50.0, DAY: 45.0}
    # The same day again replaces itself.
    assert fresh.refresh(file, accept=lambda: True, day=DAY, fetch=lambda _: cheaper, show=lambda _: None)
    assert len(fresh.user_quotes(file)) == len(quotes)


def test_refreshed_prices_replace_the_catalogs_but_are_not_preferred(tmp_path):
    from advisor.budget.offers import all_offers

    file = tmp_path / "prices.csv"
    fresh.refresh(file, accept=lambda: True, day=DAY, fetch=lambda _: ITEMS, show=lambda _: None)
    found = [one for one in all_offers(DAY, fresh.user_quotes(file)) if one.instance == "p5.48xlarge" and one.provider == "AWS"]
    assert {(one.mode, one.hourly, one.origin) for one in found} == {("on_demand", 50.0, "refresh"), ("spot", 15.0, "refresh")}
    # 3200 Gbit/s are the catalog's knowledge of the machine, and stay.
    assert all(one.network_rate == 400 and one.rdma == "EFA v2" for one in found)


def test_a_cheaper_region_of_a_later_day_replaces_the_earlier(tmp_path):
    from advisor.budget.offers import all_offers

    file = tmp_path / "prices.csv"
    fresh.refresh(file, accept=lambda: True, day="2026-11-01", fetch=lambda _: [item()], show=lambda _: None)
    later = [item(location="us-west-2", price=45.0)]
    fresh.refresh(file, accept=lambda: True, day=DAY, fetch=lambda _: later, show=lambda _: None)
    found = [
        one for one in all_offers(DAY, fresh.user_quotes(file)) if (one.instance, one.mode) == ("p5.48xlarge", "on_demand")
    ]
    assert [(one.region, one.hourly) for one in found if one.provider == "AWS"] == [("us-west-2", 45.0)]


def test_it_fails_politely(tmp_path, monkeypatch, capsys):
    def offline(_):
        raise fresh.RefreshError("New prices could not be had (URLError): are you offline? Nothing was changed.")

    monkeypatch.setattr(fresh, "fetch_items", offline)
    monkeypatch.setattr(fresh.refresh, "__kwdefaults__", fresh.refresh.__kwdefaults__ | {"fetch": offline})
    assert fresh.main(["refresh", "--file", str(tmp_path / "p.csv"), "--yes"]) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert "offline" in told.err
    assert not (tmp_path / "p.csv").exists()


def test_not_installed_is_one_sentence(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gpuhunt", None)
    with pytest.raises(fresh.RefreshError, match="not installed"):
        fresh.fetch_items()


def test_another_librarys_failure_is_one_sentence(monkeypatch):
    def broken(**_):
        raise OSError("no route")

    monkeypatch.setitem(__import__("sys").modules, "gpuhunt", SimpleNamespace(Catalog=broken))
    with pytest.raises(fresh.RefreshError, match=r"could not be had \(OSError\)"):
        fresh.fetch_items()


def test_the_users_file_has_a_place(monkeypatch, tmp_path):
    monkeypatch.setenv("ADVISOR_PRICES", str(tmp_path / "mine.csv"))
    assert fresh.user_file() == tmp_path / "mine.csv"
    assert fresh.user_quotes() == ()
