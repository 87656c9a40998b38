"""What a visitor can reach: a page and its own calculation, and nothing of the machine. No browser: raw clients do worse."""

from __future__ import annotations

import datetime
import http.client
import json
import re
import select
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import websocket
from conftest import running

PAGE = "/voila/render/02_vram_budget.ipynb"


def kernel_of(server) -> str:
    status, page, _ = server.get(PAGE)
    assert status == 200
    return re.search(r'"kernelId": ?"([0-9a-f-]+)"', page).group(1)


class Client:
    """A websocket client that says whatever it likes."""

    def __init__(self, server, kernel: str, origin: str | None = None) -> None:
        address = server.url.replace("http", "ws") + f"/api/kernels/{kernel}/channels"
        self.socket = websocket.create_connection(address, timeout=20, origin=origin, suppress_origin=origin is None)

    def send(self, kind: str, content: dict, channel: str = "shell", version: str = "2.1.0") -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat()
        header = {"msg_id": uuid.uuid4().hex, "username": "", "session": uuid.uuid4().hex, "msg_type": kind}
        message = {"header": {**header, "version": "5.3", "date": now}, "parent_header": {}, "metadata": {"version": version}}
        message |= {"content": content, "channel": channel, "buffers": []}
        self.socket.send(json.dumps(message))

    def one(self, seconds: float) -> dict | None:
        """The next message, or None when none has begun to come in time. A message that has begun is read to its end."""
        if not select.select([self.socket.sock], [], [], seconds)[0]:
            return None
        self.socket.settimeout(30)
        raw = self.socket.recv()
        if isinstance(raw, bytes):
            count = int.from_bytes(raw[:4], "big")
            offsets = [int.from_bytes(raw[4 * i + 4 : 4 * i + 8], "big") for i in range(count)] + [len(raw)]
            raw = raw[offsets[0] : offsets[1]].decode()
        return json.loads(raw)

    def receive(self, seconds: float) -> list[dict]:
        found, until = [], time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if (message := self.one(left)) is None:
                break
            found.append(message)
        return found

    def states(self) -> dict:
        """The widgets of the page: {model id: {"model_name", "state"}}."""
        comm = uuid.uuid4().hex
        self.send("comm_open", {"comm_id": comm, "target_name": "jupyter.widget.control", "data": {}}, version="1.0.0")
        self.send("comm_msg", {"comm_id": comm, "data": {"method": "request_states"}})
        until = time.monotonic() + 20
        while time.monotonic() < until:
            message = self.one(1)
            if message and "states" in message["content"].get("data", {}):
                return message["content"]["data"]["states"]
        raise AssertionError("no widget states")

    def update(self, model: str, state: dict) -> None:
        self.send("comm_msg", {"comm_id": model, "data": {"method": "update", "state": state, "buffer_paths": []}})


@pytest.mark.parametrize(
    ("kind", "content", "channel"),
    [
        ("execute_request", {"code": "print(6*7)", "silent": False, "user_expressions": {}, "allow_stdin": False}, "shell"),
        ("complete_request", {"code": "import o", "cursor_pos": 8}, "shell"),
        ("inspect_request", {"code": "print", "cursor_pos": 3, "detail_level": 1}, "shell"),
        ("history_request", {"output": False, "raw": True, "hist_access_type": "tail", "n": 9}, "shell"),
        ("debug_request", {"type": "request", "seq": 1, "command": "evaluate", "arguments": {"expression": "6*7"}}, "control"),
    ],
)
def test_no_code_runs_for_a_visitor(server, kind, content, channel):
    client = Client(server, kernel_of(server))
    client.receive(1)
    client.send(kind, content, channel)
    kinds = {message["header"]["msg_type"] for message in client.receive(2)}
    assert not kinds & {
        "execute_result",
        "stream",
        "execute_reply",
        "complete_reply",
        "inspect_reply",
        "history_reply",
        "debug_reply",
    }


def test_another_origin_and_an_unknown_kernel_get_no_connection(server):
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        Client(server, kernel_of(server), origin="http://evil.example")
    with pytest.raises(websocket.WebSocketBadStatusException, match="404"):
        Client(server, "11111111-1111-1111-1111-111111111111")


@pytest.mark.parametrize(
    "path",
    [
        "/voila/files/02_vram_budget.ipynb",
        "/voila/files/demo_app.py",
        "/voila/files/secret.csv",
        "/voila/files/secret.svg",
        "/voila/files/../pyproject.toml",
        "/voila/files/..%2f..%2fetc%2fpasswd",
        "/voila/static/../../../../etc/passwd",
        "/voila/static/..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/voila/templates/advisor/static/..%2findex.html.j2",
        "/voila/templates/..%2f..%2fetc/static/passwd",
        "/voila/labextensions/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/voila/render/..%2f..%2f..%2fetc%2fpasswd",
        "/voila/render/demo_app.py",
        "/advisor/..%2fsecret.csv",
        "/api/kernels",
        "/api/sessions",
        "/api/contents",
        "/api/terminals",
        "/api/kernelspecs",
        "/lab",
        "/tree",
        "/files/secret.csv",
        "/nbconvert/html/02_vram_budget.ipynb",
        "/metrics",
    ],
)
def test_no_file_and_no_other_route(server, path):
    status, body, _ = server.get(path)
    assert status in (400, 403, 404, 500), body[:200]
    assert "root:" not in body and body != "secret" and "extends" not in body and "class Demo" not in body


def test_the_page_shows_no_source_and_no_place_on_the_machine(server, demo):
    _, page, _ = server.get(PAGE)
    assert "demo_app" not in page and str(demo) not in page


def test_a_visitor_chooses_no_template_and_no_theme(server):
    _, page, _ = server.get(PAGE + "?template=classic&theme=dark")
    assert "advisor-style" in page and "cdn" not in page
    assert 'data-jp-theme-light="true"' in page


@pytest.mark.parametrize("path", ["/", PAGE, "/voila/static/voila.js", "/nope"])
def test_every_answer_says_what_a_page_may_do(server, path):
    _, _, headers = server.get(path)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'self'" in policy and "http" not in policy


def test_answers_are_compressed(server):
    _, _, headers = server.get("/voila/static/voila.js", headers={"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] == "gzip"


def test_absurd_values_from_a_raw_client_are_refused_by_the_model(server):
    """The limits of a control are drawn in the browser: a raw client lifts them and says what it likes."""
    client = Client(server, kernel_of(server))
    states = client.states()
    slider = next(key for key, model in states.items() if model["state"].get("description") == "Micro-batch")
    keeper = next(key for key, model in states.items() if "offered" in model["state"])
    client.update(slider, {"max": 10**12})
    client.update(slider, {"value": "<b>"})
    client.update(
        keeper, {"offered": {"token": "x" * 10**6, "history": ["y"] * 10**5, "position": -7, "named": {"a" * 9999: "b"}}}
    )
    client.update(keeper, {"offered": ["not a dictionary"]})
    client.update(keeper, {"offered": {"token": {"deep": []}, "history": {"a": 1}, "named": [1, 2]}})
    client.receive(1)
    client.update(slider, {"value": 12})
    answers = json.dumps([message["content"].get("data", {}) for message in client.receive(4)])
    assert "12 lora" in answers  # alive, and at the value that can be
    assert "yyy" not in answers


def test_too_many_visitors_get_a_friendly_page(demo):
    with running(demo, max_sessions=2) as server:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: server.get(PAGE), range(8)))
        assert sorted(status for status, _, _ in answers) == [200, 200] + [503] * 6
        _, body, headers = next(answer for answer in answers if answer[0] == 503)
        assert "All places are taken." in body and "当前使用人数已满" in body and "runs 2 at once" in body
        assert headers["Retry-After"] == "20"
        assert len(server.kernels()) == 2
        assert server.get("/")[0] == 200  # the start page needs no place


def test_a_closed_page_gives_its_place_back(server):
    before = server.kernels()
    kernel = kernel_of(server)
    (mine,) = set(server.kernels()) - set(before)
    status, _, _ = server.get(f"/voila/api/shutdown/{kernel}", method="POST")  # the beacon: no token of any kind
    assert status == 204
    mine.wait(20)


def test_a_visitor_who_leaves_before_the_page_is_made_leaves_nothing_behind(server):
    before = set(server.kernels())
    host, port = server.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port))
    connection.request("GET", PAGE)
    until = time.monotonic() + 20
    while not (mine := set(server.kernels()) - before) and time.monotonic() < until:
        time.sleep(0.02)
    connection.close()
    for kernel in mine:
        kernel.wait(30)  # long before the minute after which unclaimed kernels go
    assert mine


def test_visitors_bring_the_token(demo):
    with running(demo, **{"token": "open sesame"}) as server:
        assert "?token=open" in server.log.read_text()
        status, body, _ = server.get(PAGE)
        assert "kernelId" not in body and status in (200, 403)
        assert server.kernels() == []
        status, body, _ = server.get(PAGE + "?token=open%20sesame")
        assert status == 200 and "kernelId" in body


def test_behind_a_path(demo):
    with running(demo, base_url="/team/advisor", base="/team/advisor") as server:
        status, body, _ = server.get("/")
        assert status == 200 and 'href="/team/advisor/voila/render/02_vram_budget.ipynb"' in body
        status, body, _ = server.get(PAGE)
        assert status == 200 and "/team/advisor/advisor/vega-" in body
        bundle = re.search(r'src="/team/advisor(/advisor/vega-[^"]+)"', body).group(1)
        assert server.get(bundle)[0] == 200


def test_preheated_pages_are_there_at_once_and_a_dead_one_is_replaced(demo):
    with running(demo, preheat=True) as server:
        server.wait_for_kernels(4, seconds=60)
        until = time.monotonic() + 60
        while time.monotonic() < until:  # started, and its cells run
            start = time.monotonic()
            server.get("/")
            if time.monotonic() - start < 0.2 and time.monotonic() > until - 52:
                break
            time.sleep(0.2)
        for kernel in server.kernels():
            kernel.kill()
        time.sleep(1)
        done = threading.Event()
        answers: list[int] = []

        def visit() -> None:
            answers.append(server.get(PAGE)[0])
            done.set()

        threading.Thread(target=visit, daemon=True).start()
        assert done.wait(45), "the page of a dead kernel never comes"
        assert answers == [200]
