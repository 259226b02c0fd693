"""Values to JSON text and back."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
from typing import Any

import pytest

from engine_sdk import EngineError
from engine_sdk._codec import decode, encode, frame, quote, read_head


class Colour(str, enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1.5,
        2**80,
        "",
        "żółć 🚀",
        [],
        {},
        [None, {"a": [1]}],
        "line\nbreak",
        "\u2028",
    ],
)
def test_encode_keeps_whatever_json_can_hold(value: Any) -> None:
    text = encode(value, "Value")

    assert json.loads(text) == value
    assert "\n" not in text


def test_encode_writes_tuples_as_lists_and_keys_as_text() -> None:
    assert encode({1: (2, Colour.RED), None: 1.0}, "Value") == '{"1":[2,"red"],"null":1.0}'


def test_encode_keeps_half_a_surrogate_pair() -> None:
    text = encode({"broken": "\ud83d"}, "Value")

    assert text.isascii()
    assert json.loads(text) == {"broken": "\ud83d"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "value is nan"),
        ({"a": [1, -math.inf]}, "value.a[1] is -inf"),
        ({"at": datetime.date(2025, 1, 1)}, "value.at is a date"),
        ([decimal.Decimal("1.0")], "value[0] is a Decimal"),
        (b"bytes", "value is a bytes"),
        ({"s": {1, 2}}, "value.s is a set"),
        (object(), "value is a object"),
        ({(1, 2): 3}, "a key of value is a tuple"),
        (lambda: None, "value is a function"),
    ],
)
def test_encode_says_which_part_json_cannot_hold(value: Any, reason: str) -> None:
    with pytest.raises(EngineError) as raised:
        encode(value, "Payload of a::b")

    assert raised.value.code == "serialization_error"
    assert raised.value.message == f"Payload of a::b cannot be sent as JSON: {reason}"


def test_encode_refuses_what_holds_itself_and_what_is_nested_without_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    for value in (loop, deep):
        with pytest.raises(EngineError, match="nested too deeply or contains itself"):
            encode(value, "Payload")


def test_encode_refuses_more_than_a_message_may_hold() -> None:
    with pytest.raises(EngineError, match="a message holds at most 67108864"):
        encode("x" * (64 * 1024 * 1024), "Payload")


def test_frame_leaves_out_what_is_none_and_keeps_the_order() -> None:
    assert frame("ping", b="1", a=None, c='"x"') == '{"type":"ping","b":1,"c":"x"}'


@pytest.mark.parametrize("text", ["", "no", "[]", "null", "5", "{}", '{"type":1}', '{"a":'])
def test_decode_refuses_what_is_no_message(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text is the parser's
        decode(text)


def test_decode_takes_any_order_and_any_spacing() -> None:
    assert decode(' { "data" : [ 1 ] ,\n "type" : "x" } ') == {"type": "x", "data": [1]}


def test_read_head_reads_ids_in_front_only() -> None:
    head = '{"type":"invokefunction","invocation_id":"i","function_id":"f","data":'

    assert read_head(head) == ("invokefunction", "i", "f")
    assert read_head('{"type":"invocationresult","invocation_id":"i",') == (
        "invocationresult",
        "i",
        None,
    )
    assert read_head('{"type":"registertrigger","invocation_id":"i"') is None
    assert read_head(f'{{"data":{head}') is None


def test_quote_cannot_fail() -> None:
    for text in ("a::b", "żółć 🚀", '"\\\n\x00', "half \ud83d of a pair"):
        quoted = quote(text)
        quoted.encode()
        assert json.loads(quoted) == text
