"""Options of the server, and where it finds what it serves. Running servers are in tests/browser."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import jinja2
import pytest

from advisor import serve
from advisor.serve.front import MENDED, chunks, front
from advisor.serve.handlers import CONTENT_POLICY, Places
from advisor.serve.rendering import Compiled
from advisor.serve.server import EXTENSIONS, AdvisorVoila, Kernels, settings
from advisor.ui.walk import navigation, walk


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"port": 0}, "port must be between 1 and 65535, but was given 0"),
        ({"port": 70_000}, "port must be between 1 and 65535"),
        ({"max_sessions": 0}, "visitors at once must be at least 1"),
        ({"base_url": "/a b"}, "base URL must be a path"),
        ({"base_url": "/a?b"}, "base URL must be a path"),
    ],
)
def test_options_that_cannot_be(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        serve.serve(**options)


def test_notebooks_of_an_installation_come_before_those_of_a_checkout(tmp_path, monkeypatch):
    package = tmp_path / "advisor"
    monkeypatch.setattr(serve, "PACKAGE", package)
    for folder in (tmp_path / "notebooks", package / "notebooks"):
        folder.mkdir(parents=True)
    with pytest.raises(ValueError, match="notebooks are missing"):
        serve.notebook_folder()
    (tmp_path / "notebooks" / "advisor.ipynb").write_text("{}")
    assert serve.notebook_folder() == tmp_path / "notebooks"
    (package / "notebooks" / "advisor.ipynb").write_text("{}")
    assert serve.notebook_folder() == package / "notebooks"


def test_the_template_is_found_without_an_installation(monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", "/elsewhere")
    serve.add_jupyter_path()
    serve.add_jupyter_path()
    first, *rest = os.environ["JUPYTER_PATH"].split(os.pathsep)
    assert rest == ["/elsewhere"]
    assert os.path.exists(os.path.join(first, "voila", "templates", "advisor", "index.html.j2"))


def config(tmp_path, **changed):
    options = {
        "host": "127.0.0.1",
        "port": 8866,
        "token": "",
        "max_sessions": 3,
        "preheat": False,
        "base_url": "/",
        "open_browser": False,
        "folder": tmp_path,
    }
    return settings(**{**options, **changed})


def test_doors_are_closed(tmp_path):
    found = config(tmp_path)
    look = found.VoilaConfiguration
    assert (look.template, look.allow_template_override, look.allow_theme_override) == ("advisor", "NO", "NO")
    assert (look.file_allowlist, look.extension_allowlist) == ([], EXTENSIONS)
    assert look.strip_sources is True and look.show_tracebacks is False
    assert found.MappingKernelManager.cull_connected is True
    assert found.MappingKernelManager.cull_idle_timeout > 0


def test_a_configuration_file_of_the_machine_opens_nothing(tmp_path, monkeypatch):
    (tmp_path / "voila.json").write_text('{"VoilaConfiguration": {"file_allowlist": [".*"], "template": "lab"}}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("advisor.serve.server.bundle", lambda: None)
    serve.add_jupyter_path()
    app = AdvisorVoila(config=config(tmp_path))
    app.initialize([])
    assert app.voila_configuration.template == "advisor"
    assert app.voila_configuration.file_allowlist == []
    assert app.template_paths[0].endswith(os.path.join("voila", "templates", "advisor"))


@pytest.mark.parametrize(
    ("options", "link"),
    [
        ({}, "http://127.0.0.1:8866/"),
        ({"host": "0.0.0.0"}, "http://127.0.0.1:8866/"),  # noqa: S104 - nothing is bound here
        ({"host": "::1"}, "http://[::1]:8866/"),
        ({"base_url": "/team/"}, "http://127.0.0.1:8866/team/"),
        ({"token": "a b&c"}, "http://127.0.0.1:8866/?token=a%20b%26c"),
    ],
)
def test_the_link_to_open(tmp_path, options, link):
    assert AdvisorVoila(config=config(tmp_path, **options)).link == link


def test_the_kernel_is_this_python():
    spec = Kernels().get_kernel_spec("python3")
    assert spec.argv[0] == sys.executable
    assert set(Kernels().find_kernel_specs()) == {"python3"}


class Manager:
    """A kernel manager with some kernels."""

    def __init__(self, ids):
        self.ids = ids

    def list_kernel_ids(self):
        return self.ids


def test_a_visitor_takes_one_place_from_asking_to_leaving():
    places = Places(2)
    manager = Manager(["preheated"])
    assert places.taken(manager) == 0
    with places.reserved() as place:
        assert places.taken(manager) == 1
        place.kernel_id = "a"
        assert places.taken(manager) == 1, "on its way"
        manager.ids.append("a")
        assert places.taken(manager) == 1, "and there"
        with places.reserved() as other:
            other.kernel_id = "preheated"
            assert places.taken(manager) == 2
    assert places.taken(manager) == 2
    manager.ids.remove("a")
    assert places.taken(manager) == 1
    with pytest.raises(RuntimeError), places.reserved():
        raise RuntimeError
    assert places.taken(manager) == 1


def test_a_page_may_load_from_this_server_only():
    assert "default-src 'self'" in CONTENT_POLICY
    assert "http" not in CONTENT_POLICY and "*" not in CONTENT_POLICY


def test_the_walk_says_what_each_page_answers():
    stages = walk()
    assert [stage.file for stage in stages if not stage.whole][:5] == [
        "01_model_and_method",
        "02_vram_budget",
        "03_cards_and_interconnect",
        "04_storage_layout",
        "05_budget",
    ]
    for stage in stages:
        for text in (stage.title, stage.answer):
            assert set(text) == {"en", "zh"} and all(text.values())
        assert stage.answer["en"].endswith(("?", ".")) and stage.answer["zh"].endswith(("？", "。", "?"))
    links = navigation("05_budget", "zh", done=("01_model_and_method",))
    assert links.count("data-advisor-nav") == len(stages) - 1
    assert links.count('aria-current="page"') == links.count("advisor-done") == 1


ENTRY = (
    "var g={7:(e,t,r)=>{Promise.all([r.e(11),r.e(12)]).then(r.bind(r,5))}};"
    'y={101:()=>c("default","a",!1,[1,2],(()=>x.e(21).then((()=>()=>x(101))))),'
    '102:()=>c("default","b",!1,[1,2],(()=>Promise.all([x.e(22),x.e(13)]).then((()=>()=>x(102))))),'
    '103:()=>c("default","c",!1,[1,2],(()=>x.e(99).then((()=>()=>x(103)))))},P={12:[101,102],13:[101],14:[103]},j={}'
)


def test_an_application_asks_for_the_chunks_of_its_entry_and_of_what_these_share():
    """By hand: 11 and 12 are asked for; 12 stands for modules 101 and 102, from 21, 22 and 13; nobody asks for 14."""
    assert chunks(ENTRY) == [11, 12, 13, 21, 22]


def test_an_entry_of_another_kind_is_left_to_its_own_loader():
    assert chunks("console.log('hello')") == []


def test_the_parts_of_a_page_are_one_script_named_by_its_content(tmp_path):
    static, extension = tmp_path / "static", tmp_path / "extension"
    static.mkdir()
    extension.mkdir()
    (static / "voila.js").write_text(ENTRY)
    (static / "11.voila.js").write_text('"use strict";(self.webpackChunk_X=self.webpackChunk_X||[]).push([[11],{1:()=>{}}]);')
    (static / "21.voila.js").write_text("(self.webpackChunk_X=[]).push([[21],{2:class{async typeset(e){try{long()}catch{}}}}])")
    (static / "99.voila.js").write_text("(self.webpackChunk_X=[]).push([[99],{}])")
    (extension / "3.js").write_text('"use strict";\n(self["webpackChunk_Y"] = []).push([[3],{}]) // no line end')
    (extension / "remoteEntry.js").write_text("var Y;")
    made = front(static, [extension, tmp_path / "missing"])
    text = made.plain.decode()
    assert all(part in text for part in ("[[11]", "[[21]", "[[3]")) and "[[99]" not in text and "var Y" not in text
    assert "async typeset(e){return;try" in text, "no formula is looked for"
    assert gzip.decompress(made.packed) == made.plain
    again = front(static, [extension])
    (extension / "3.js").write_text("(self.rspackChunk_Y = []).push([[3],{}])")
    assert made.name == again.name != front(static, [extension]).name


def test_what_is_mended_is_there_once(tmp_path):
    """A newer version of a package may need no mending, or another: then this fails and MENDED is to be read again."""
    found = AdvisorVoila(config=config(tmp_path, folder=serve.notebook_folder()))
    found.initialize([])
    pages, _ = found.scripts
    static = next(Path(folder) for folder in found.static_paths if (Path(folder) / "voila.js").exists())
    files = [static / f"{number}.voila.js" for number in chunks((static / "voila.js").read_text())]
    files += [
        file for name in EXTENSIONS for folder in found.labextensions_path for file in Path(folder, name).glob("static/*.js")
    ]
    texts = [file.read_text() for file in files if file.exists()]
    for where, _ in MENDED:
        assert sum(len(where.findall(text)) for text in texts) == 1
        assert not where.search(pages.plain.decode()), "once is enough"
    assert "this._models[e]))return t;throw Error(" in pages.plain.decode()


def test_templates_are_compiled_once():
    source = jinja2.DictLoader({"page": "Hello {{ name }}"})
    compiled = Compiled()
    for _ in range(2):
        environment = jinja2.Environment(loader=source, bytecode_cache=compiled, autoescape=True)
        assert environment.get_template("page").render(name="you") == "Hello you"
    assert len(compiled.kept) == 1
