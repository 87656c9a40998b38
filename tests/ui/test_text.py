"""Both languages: nothing untranslated, nothing unused, and a switch that changes words only."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import ipywidgets
import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from advisor.ui import text as module
from advisor.ui.guard import Alerts, guard
from advisor.ui.text import LANGUAGES, LOCALE, Texts, translate

PACKAGE = Path(module.__file__).parents[1]
#: What marks a text in the code. `Alerts.show` and `PlanKeeper.busy` take a marked one.
KEYWORDS = {"N_": None, "t": None, "translate": None}
OTHERS = [lang for lang in LANGUAGES if lang != "en"]


def used() -> dict[str, str]:
    """Every marked text of the code: {text: where}."""
    found = {}
    for folder in ("ui", "charts", "report"):
        if (PACKAGE / folder).is_dir():
            for name, line, message, *_ in extract_from_dir(str(PACKAGE / folder), [("**.py", "python")], keywords=KEYWORDS):
                found[message] = f"{folder}/{name}:{line}"
    return found


def entries(lang: str):
    found = []
    for path in sorted((LOCALE / lang / "LC_MESSAGES").glob("*.po")):
        with path.open("rb") as file:
            found += [entry for entry in read_po(file) if entry.id]
    return found


@pytest.mark.parametrize("lang", OTHERS)
def test_every_text_is_translated(lang):
    known = module.catalog(lang)
    missing = {text: where for text, where in used().items() if text not in known}
    assert missing == {}


@pytest.mark.parametrize("lang", OTHERS)
def test_every_translation_is_used(lang):
    unused = {entry.id for entry in entries(lang)} - set(used())
    assert unused == set()


@pytest.mark.parametrize("lang", OTHERS)
def test_no_text_is_translated_twice(lang):
    names = [entry.id for entry in entries(lang)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("lang", OTHERS)
def test_every_translation_takes_the_same_values(lang):
    for entry in entries(lang):
        places = re.compile(r"%\((\w+)\)[sd]")
        assert sorted(places.findall(entry.id)) == sorted(places.findall(entry.string)), entry.id


@pytest.mark.parametrize("lang", OTHERS)
def test_the_agreed_words_only(lang):
    """Literal translations that practitioners find odd."""
    for entry in entries(lang):
        for odd in ("视频内存", "完全调优", "活化", "管道并行", "头部空间", "饥饿", "互连"):
            assert odd not in entry.string, entry.id


def test_values_go_in_by_name():
    assert translate("%(count)s of %(total)s", "en", count=3, total=8) == "3 of 8"
    assert translate("no such text", "zh") == "no such text"
    assert translate("100 % sure", "en") == "100 % sure"


def test_bound_widgets_follow_the_language():
    texts = Texts()
    button = texts.bind(ipywidgets.Button(), description="Reload", tooltip=lambda: texts.lang.upper())
    texts.lang = "zh"
    assert (button.description, button.tooltip) == ("重新加载", "ZH")
    texts.lang = "en"
    assert (button.description, button.tooltip) == ("Reload", "EN")


@pytest.mark.parametrize("kind", [ipywidgets.ToggleButtons, ipywidgets.Dropdown, ipywidgets.RadioButtons])
def test_labels_change_and_the_value_stays(kind):
    texts, changes = Texts(), []
    choice = texts.bind_options(kind(), [("Reload", "a"), ("Link copied", "b")])
    choice.value = "b"
    choice.observe(changes.append, "value")
    texts.lang = "zh"
    assert choice.get_state()["_options_labels"] == ("重新加载", "链接已复制")
    assert (choice.value, choice.label, changes) == ("b", "链接已复制", [])
    choice.value = "a"
    assert len(changes) == 1 and choice.label == "重新加载"


def test_a_discarded_widget_is_let_go():
    texts = Texts()
    button = texts.bind(ipywidgets.Button(), description="Reload")
    for widget in (button, button.layout, button.style):
        widget.close()
    del button, widget
    gc.collect()
    texts.lang = "zh"
    assert len(texts._bound) == 0


def test_an_error_is_one_sentence_in_the_page_language(capsys):
    texts = Texts(lang="zh")
    alerts = Alerts(texts)

    @guard(alerts)
    def handler(number: int) -> float:
        if number == 1:
            raise ValueError("It must be <b>2</b>.")
        return 1 / number

    assert handler(2) == 0.5
    assert handler(1) is None
    assert alerts.message == "It must be <b>2</b>." and "&lt;b&gt;" in alerts.widget.value
    assert handler(0) is None
    assert "ZeroDivisionError" not in alerts.widget.value and "不是你的操作造成的" in alerts.message
    texts.lang = "en"
    assert "not your doing" in alerts.message
    alerts.clear()
    assert alerts.message == "" and 'role="alert"' in alerts.widget.value
    with pytest.raises(ValueError, match="severity must be one of"):
        alerts.show("x", severity="loud")
