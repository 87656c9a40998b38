"""A plan in a link: the same way back, and nothing else gets in."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.ui.link import DEEPEST, LARGEST_JSON, LONGEST_TOKEN, LinkError, decode, encode

GIVEN = {"model": "llama-3.1-8b", "method": "lora", "tokens": "2亿 token", "lora": {"rank": 16, "targets": ["q_proj"]}}


def packed(content: bytes, version: str = "1") -> str:
    return f"{version}." + base64.urlsafe_b64encode(zlib.compress(content, 9)).rstrip(b"=").decode()


def test_there_and_back():
    assert decode(encode(GIVEN)) == GIVEN


def test_order_of_keys_does_not_change_the_link():
    assert encode(GIVEN) == encode(dict(reversed(GIVEN.items())))


def test_three_choices_make_a_short_link():
    """It is read out, printed and pasted into chats: the usual plan stays under 120 characters."""
    assert len(encode({"model": "llama-3.1-8b", "method": "lora", "tokens": "200 Mtoken"})) < 120


@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        ("", "carries no plan"),
        (None, "carries no plan"),
        (17, "carries no plan"),
        ("AAAA", "damaged"),
        ("1.AAAA", "damaged"),
        ("1.####", "damaged"),
        (encode(GIVEN)[:-6], "damaged"),
        (encode(GIVEN) + "QUJD", "damaged"),
        ("2." + encode(GIVEN)[2:], "another version"),
        ("x" * (LONGEST_TOKEN + 1), f"at most {LONGEST_TOKEN}"),
        (packed(b"[]"), "does not hold a plan"),
        (packed(b'"text"'), "does not hold a plan"),
        (packed(b'{"a": NaN}'), "damaged"),
        (packed(b'{"a": Infinity}'), "damaged"),
        (packed(b'{"a": 1e999}'), "does not hold a plan"),
        (packed(b'{"a": 1' + b"0" * 40 + b"}"), "does not hold a plan"),
        (packed(b'{"a": 1' + b"0" * 5000 + b"}"), "damaged"),
        (packed(b"\xff\xfe"), "damaged"),
        (packed(b'{"a":' * 50 + b"1" + b"}" * 50), "nested too deeply"),
        (packed(json.dumps({"a": [0] * 5000}).encode()), "too many parts"),
        (packed(json.dumps({"a": "x" * 3000}).encode()), "text in the link's plan is too long"),
        (packed(b"[" * 20_000), "damaged"),
        (packed(b" " * 50_000_000), "at most"),  # 50 MB packed into 65 kB: refused by its length
        (packed(b" " * 4_000_000), "too large to be one"),  # 4 MB packed into 5 kB: refused before it is unpacked
        (packed(b" " * (LARGEST_JSON + 1)), "too large to be one"),
    ],
)
def test_refused_in_one_sentence(token, sentence):
    with pytest.raises(LinkError, match=sentence) as caught:
        decode(token)
    assert set(caught.value.text) == {"en", "zh"}
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_back_is_not_written():
    with pytest.raises(LinkError, match="too large for a link"):
        encode({f"k{i}": f"{i * 7919 % 10007}-{i}" for i in range(1500)})
    with pytest.raises(LinkError, match="does not hold a plan"):
        encode({"a": object()})
    with pytest.raises(LinkError, match="does not hold a plan"):
        encode({"a": float("nan")})


@given(st.text(max_size=200))
def test_any_text_is_refused_or_read(text):
    for token in (text, "1." + text):
        try:
            assert isinstance(decode(token), dict)
        except LinkError as error:
            assert len(str(error)) < 200


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | FLOATS | st.text(max_size=40),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=10), part, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=20), JSON, max_size=6))
def test_any_plain_dictionary_comes_back(content):
    def depth(part):
        values = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        return 1 + max((depth(value) for value in values), default=0)

    if depth(content) <= DEEPEST:
        assert decode(encode(content)) == content
