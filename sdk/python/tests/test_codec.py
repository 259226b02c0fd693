"""Values to JSON text and back."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
import random
from typing import Any

import pytest

from engine_sdk import EngineError
from engine_sdk._codec import decode, encode, frame, is_too_deep, quote, read_head


def nested(depth: int) -> Any:
    """Return a list in lists, ``depth`` levels in all."""
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def depth_of(text: str) -> int:
    """Count levels one character at a time."""
    depth = deepest = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def test_is_too_deep_agrees_with_counting() -> None:
    chance = random.Random(13)

    def some(depth: int) -> Any:
        if depth == 0:
            return chance.choice([1, None, "]", '["', '\\"', "\\", "{", "a", ""])
        parts = [some(chance.randrange(depth)) for _ in range(chance.randrange(4))]
        deep = some(depth - 1)
        return {chance.choice("ab]{"): deep, "z": parts} if depth % 2 else [*parts, deep]

    for _ in range(300):
        text = json.dumps(some(chance.randrange(12)), separators=(",", ":"))
        for depth_max in (1, 3, 6, 9):
            assert is_too_deep(text, depth_max) == (depth_of(text) > depth_max), text


def test_encode_accepts_128_levels_and_names_the_path_to_the_next() -> None:
    assert depth_of(encode(nested(128), "Payload")) == 128

    with pytest.raises(EngineError, match=r"value\.rows\[1\]\[0\].* more deeply than 128 levels"):
        encode({"rows": [1, nested(127)]}, "Payload")


def test_encode_counts_bytes_and_not_characters() -> None:
    with pytest.raises(EngineError, match="takes 67108866 bytes") as caught:
        encode("é" * (32 * 1024 * 1024), "Payload")

    assert caught.value.details == {"bytes": 67_108_866, "limit_bytes": 67_108_864}


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
    ("value", "path", "reason"),
    [
        (math.nan, "", "value is nan"),
        ({"a": [1, -math.inf]}, ".a[1]", "value.a[1] is -inf"),
        (
            {"at": datetime.date(2025, 1, 1)},
            ".at",
            "value.at is a date; send its isoformat()",
        ),
        ([decimal.Decimal("1.0")], "[0]", "value[0] is a Decimal; send a number or a string"),
        (b"bytes", "", "value is a bytes; send a string, such as base64"),
        ({"s": {1, 2}}, ".s", "value.s is a set; send a list"),
        ({"n": (n for n in [1])}, ".n", "value.n is a generator; send a list: list(values)"),
        (object(), "", "value is a object"),
        ({"a": {(1, 2): 3}}, ".a", "a key of value.a is a tuple"),
        (lambda: None, "", "value is a function"),
    ],
)
def test_encode_says_which_part_json_cannot_hold(value: Any, path: str, reason: str) -> None:
    with pytest.raises(EngineError) as raised:
        encode(value, "Payload of a::b")

    assert raised.value.code == "serialization_error"
    assert raised.value.message == f"Payload of a::b cannot be sent as JSON: {reason}"
    assert raised.value.details == {"path": path}


def test_encode_refuses_what_holds_itself_and_what_is_nested_without_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    for value in (loop, deep):
        with pytest.raises(
            EngineError, match="nested more deeply than 128 levels, or contains itself"
        ):
            encode(value, "Payload")


def test_encode_refuses_more_than_a_message_may_hold() -> None:
    with pytest.raises(EngineError, match="takes 67108866 bytes; at most 67108864 are allowed"):
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
