"""The plan keeper without a browser: undo, names, and what a page may say."""

from __future__ import annotations

import pytest

from advisor.ui import bridge, link
from advisor.ui.bridge import PlanKeeper
from advisor.ui.text import Texts


@pytest.fixture
def keeper():
    restored = []
    one = PlanKeeper(Texts(), restore=restored.append)
    one.restored = restored
    return one


def offer(keeper, **content):
    keeper.offered = {**content, "count": len(keeper.offered) + id(content)}


def test_undo_and_redo(keeper):
    for batch in (1, 2, 3):
        keeper.offer({"batch": batch})
    keeper.undo()
    keeper.undo()
    assert (keeper.restored, keeper.can_undo, keeper.can_redo) == ([{"batch": 2}, {"batch": 1}], False, True)
    assert link.decode(keeper.token) == {"batch": 1}
    keeper.undo()
    assert len(keeper.restored) == 2
    keeper.redo()
    assert keeper.restored[-1] == {"batch": 2}
    keeper.offer({"batch": 9})
    assert not keeper.can_redo
    keeper.undo()
    assert keeper.restored[-1] == {"batch": 2}


def test_the_same_plan_again_is_no_step(keeper):
    keeper.offer({"batch": 1})
    keeper.offer({"batch": 1})
    assert len(keeper.history) == 1


def test_history_is_bounded(keeper):
    for batch in range(bridge.LONGEST_HISTORY + 20):
        keeper.offer({"batch": batch})
    assert len(keeper.history) == bridge.LONGEST_HISTORY


def test_controls_that_move_during_a_restore_say_nothing():
    """Setting one control would otherwise write the old value of the next back into the plan."""
    keeper = PlanKeeper(Texts(), restore=lambda given: keeper.offer({"half": "set"}))
    offer(keeper, token=link.encode({"batch": 5}))
    assert keeper.given == {"batch": 5}
    assert [link.decode(token) for token in keeper.history] == [{"batch": 5}]


def test_a_refused_plan_changes_nothing_and_says_why():
    def refuse(given):
        if given["batch"] > 64:
            raise ValueError("The micro-batch must be between 1 and 64.")

    keeper = PlanKeeper(Texts(), restore=refuse)
    keeper.offer({"batch": 8})
    offer(keeper, token=link.encode({"batch": 1000}))
    assert keeper.given == {"batch": 8}
    assert keeper.alerts.message == "The micro-batch must be between 1 and 64."
    offer(keeper, **{"token": "garbage"})
    assert keeper.alerts.message.startswith("The link is damaged")
    keeper.texts.lang = "zh"
    assert keeper.alerts.message.startswith("链接已损坏")
    offer(keeper, token=link.encode({"batch": 9}))
    assert keeper.alerts.message == ""


def test_named_plans(keeper):
    keeper.offer({"batch": 1})
    keeper.save("  cheap   one ")
    keeper.offer({"batch": 2})
    assert keeper.names == ("cheap one",)
    assert keeper.read("cheap one") == {"batch": 1}
    keeper.recall("cheap one")
    assert keeper.given == {"batch": 1}
    keeper.undo()
    assert keeper.given == {"batch": 2}
    keeper.delete("cheap one")
    assert keeper.names == ()
    with pytest.raises(ValueError, match="No plan is saved as 'cheap one'"):
        keeper.recall("cheap one")


@pytest.mark.parametrize("name", ["", "   ", "x" * 81])
def test_names_that_cannot_be(keeper, name):
    keeper.offer({"batch": 1})
    with pytest.raises(ValueError, match="1 to 80 characters"):
        keeper.save(name)


def test_the_browser_keeps_a_bounded_number(keeper):
    keeper.offer({"batch": 1})
    for number in range(bridge.MOST_NAMED):
        keeper.save(f"plan {number}")
    with pytest.raises(ValueError, match="delete one first"):
        keeper.save("one more")
    keeper.save("plan 3")


@pytest.mark.parametrize(
    "content",
    [
        {"token": 17, "history": "no", "position": None, "named": "no"},
        {"history": [None, 3, {}, "x" * 7000], "position": 99},
        {"named": {"ok": "1.x", "bad": 3, "": "1.x", "n" * 99: "1.x", "long": "y" * 7000}},
        {"history": ["1.a"] * 500, "position": True},
        {},
    ],
)
def test_whatever_a_page_says_stays_within_bounds(keeper, content):
    offer(keeper, **content)
    assert len(keeper.history) <= bridge.LONGEST_HISTORY
    assert set(keeper.named) <= {"ok"}
    keeper.undo()
    keeper.redo()
    keeper.offer({"batch": 1})
    assert keeper.given == {"batch": 1}


def test_history_of_the_tab_comes_back(keeper):
    past = [link.encode({"batch": batch}) for batch in (1, 2, 3)]
    offer(keeper, token=past[1], history=past, position=1)
    assert (keeper.given, keeper.can_undo, keeper.can_redo) == ({"batch": 2}, True, True)


def test_the_page_says_its_language(keeper):
    offer(keeper, lang="zh")
    assert (keeper.texts.lang, keeper.lang) == ("zh", "zh-CN")
    for odd in (7, None, ["zh"], {}, ""):
        offer(keeper, lang=odd)
        assert keeper.texts.lang == "zh"
    offer(keeper, lang="fr-FR")
    assert keeper.texts.lang == "en"


def test_work_is_announced_in_the_language(keeper):
    with pytest.raises(ZeroDivisionError), keeper.busy("Reload"):
        assert keeper.busy_text == "Reload"
        raise ZeroDivisionError
    assert keeper.busy_text == ""
