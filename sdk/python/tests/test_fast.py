"""JSON with orjson equals JSON with Python's ``json``; the loop of a worker."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import random
import sys
import uuid
from typing import Any

import pytest

from conftest import Connect
from engine_sdk import _fast
from engine_sdk._fast import find_extra, make_fast, new_loop, plain_dumps, plain_loads
from fakes import FakeEngine


class Colour(enum.Enum):
    RED = 1


class Word(str, enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass
class Point:
    x: int = 1


Pair = collections.namedtuple("Pair", ["a", "b"])

ODD_VALUES: list[Any] = [
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**63),
    -(2**63) - 1,
    2**200,
    math.nan,
    [1, math.inf],
    {"a": -math.inf, "b": None},
    {"a": None},
    -0.0,
    5e-324,
    1e22,
    1.7976931348623157e308,
    "\ud83d",
    {"\udc00": 1},
    '\x00\x1f\x7f\u2028"\\/\n',
    "a null",
    Colour.RED,
    Word.RED,
    [Number.ONE],
    Point(),
    Pair(1, [2]),
    uuid.UUID(int=5),
    {"at": uuid.UUID(int=5)},
    datetime.datetime(2026, 1, 2),
    datetime.date(2026, 1, 2),
    decimal.Decimal("1.5"),
    {1: 2, None: 3, 1.5: 5},
    {True: 4},
    {(1, 2): 3},
    {1, 2},
    b"bytes",
    bytearray(b"bytes"),
    memoryview(b"bytes"),
    1j,
    ...,
    StopIteration,
    range(3),
    collections.OrderedDict(a=1),
    collections.Counter("aab"),
    [[]] * 3,
    (1, (2, ())),
]

ODD_TEXTS = [
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "-9999999999999999999",
    "123456789012345678901234567890",
    '{"a":[12345678901234567890123]}',
    '"12345678901234567890123"',
    "0.1234567890123456789012",
    "1e400",
    "-1e400",
    "1e-400",
    "-0",
    "-0.0",
    "1E5",
    "9007199254740993",
    "NaN",
    "-Infinity",
    "[Infinity]",
    '"\\ud83d"',
    '"\\ud83d\\ude00"',
    '{"\\udc00":1}',
    '{"a":1,"a":2}',
    "[1,]",
    "01",
    "1.",
    ".5",
    "+1",
    '"\t"',
    '"\\x"',
    "",
    " ",
    " [ 1 ]\r\n",
    "\ufeff1",
    "1 2",
    "'a'",
    "tru",
    "[" * 100_000,
]


def fast() -> tuple[Any, Any]:
    orjson = find_extra("orjson")
    if orjson is None:
        pytest.skip("orjson is not installed, or switched off")
    return make_fast(orjson)


def written(dumps: Any, value: Any) -> str:
    """The decoded form of an encoded value, order of keys included."""
    try:
        text = dumps(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return "refused"
    assert "\n" not in text
    return repr(json.loads(text))


def read(loads: Any, text: str) -> str:
    """The decoded form of a text, types of numbers and surrogates included."""
    try:
        return repr(loads(text))
    except (ValueError, RecursionError):
        return "refused"


def some_value(chance: random.Random, depth: int = 0) -> Any:
    kinds = 8 if depth > 3 else 11
    kind = chance.randrange(kinds)
    if kind == 0:
        return chance.choice([None, True, False])
    if kind == 1:
        return chance.randrange(-(2**70), 2**70) >> chance.randrange(70)
    if kind == 2:
        return chance.choice(
            [chance.uniform(-1e9, 1e9), chance.random() * 10 ** chance.randrange(-300, 300)]
        )
    if kind == 3:
        return chance.choice(ODD_VALUES) if chance.random() < 0.1 else chance.randrange(100)
    if kind < 8:
        return some_text(chance)
    if kind == 8:
        return [some_value(chance, depth + 1) for _ in range(chance.randrange(5))]
    if kind == 9:
        return tuple(some_value(chance, depth + 1) for _ in range(chance.randrange(3)))
    return {some_key(chance): some_value(chance, depth + 1) for _ in range(chance.randrange(5))}


def some_text(chance: random.Random) -> str:
    marks = ["a", "7", '"', "\\", "\n", "\x00", "é", "\u2028", "🚀", "null", "1234567890"]
    if chance.random() < 0.02:
        marks.append("\ud83d")
    return "".join(chance.choice(marks) for _ in range(chance.randrange(8)))


def some_key(chance: random.Random) -> Any:
    return some_text(chance) if chance.random() < 0.95 else chance.choice([1, None, 1.5, True])


@pytest.mark.parametrize("value", ODD_VALUES, ids=repr)
def test_orjson_writes_and_refuses_what_python_does(value: Any) -> None:
    dumps, _ = fast()

    assert written(dumps, value) == written(plain_dumps, value)
    assert written(dumps, {"in": [value]}) == written(plain_dumps, {"in": [value]})


@pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: text[:40])
def test_orjson_reads_and_refuses_what_python_does(text: str) -> None:
    _, loads = fast()

    assert read(loads, text) == read(plain_loads, text)


def test_a_text_without_orjson_is_read_and_refused_as_by_json_loads() -> None:
    around = ["", " ", "\t\n\r ", "\ufeff", "x", "}", '"', ",1", "\x00"]

    for text in [*ODD_TEXTS, '{"a":[1,"b"]}', "[" * 100_000]:
        for before in around:
            for after in around:
                given = before + text + after
                assert read(plain_loads, given) == read(json.loads, given), given[:80]


def test_orjson_and_python_agree_on_values_and_texts_by_chance() -> None:
    dumps, loads = fast()

    for seed in range(3_000):
        chance = random.Random(seed)
        value = some_value(chance)
        assert written(dumps, value) == written(plain_dumps, value), f"seed {seed}"
        try:
            text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
        except (TypeError, ValueError):
            continue
        place = chance.randrange(len(text) + 1)
        broken = text[:place] + chance.choice(['"', "}", "0", ",", "\\", "e", ""]) + text[place:]
        for given in (text, broken):
            assert read(loads, given) == read(plain_loads, given), f"seed {seed}: {given!r}"


def test_orjson_is_what_writes_and_reads_where_it_is_there() -> None:
    used = []

    class Spy:
        @staticmethod
        def dumps(value: Any) -> bytes:
            used.append("dumps")
            return json.dumps(value).encode()

        @staticmethod
        def loads(text: str) -> Any:
            used.append("loads")
            return json.loads(text)

    dumps, loads = make_fast(Spy)

    assert loads(dumps({"a": [1, 2.5, "b", True]})) == {"a": [1, 2.5, "b", True]}
    assert used == ["dumps", "loads"]
    with pytest.raises(TypeError):
        dumps(uuid.UUID(int=1))
    assert used == ["dumps", "loads"]


def test_a_value_that_holds_itself_is_refused_by_both() -> None:
    dumps, _ = fast()
    loop: list[Any] = []
    loop.append(loop)

    assert written(dumps, loop) == written(plain_dumps, loop) == "refused"


def test_the_extra_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for off in ("0", "false", "FALSE"):
        monkeypatch.setenv("ENGINE_SDK_FAST", off)
        assert find_extra("json") is None
        assert _fast.choose() == (plain_dumps, plain_loads)
    for on in ("1", ""):
        monkeypatch.setenv("ENGINE_SDK_FAST", on)
        assert find_extra("json") is json


def test_an_extra_that_is_not_there_is_done_without() -> None:
    assert find_extra("engine_sdk_has_no_such_extra") is None


class OwnLoop(asyncio.SelectorEventLoop):
    """A loop of a program's own policy."""


def made() -> str:
    loop = new_loop(asyncio.SelectorEventLoop)
    loop.close()
    return f"{type(loop).__module__}.{type(loop).__name__}"


@pytest.mark.skipif(find_extra("uvloop") is None, reason="uvloop is not there, or switched off")
def test_a_worker_gets_the_loop_of_uvloop_where_that_is_installed(
    connect: Connect, engine: FakeEngine
) -> None:
    assert made() == "uvloop.Loop"
    worker = connect(engine)

    async def loop_of_handler(_: object) -> str:
        return type(asyncio.get_running_loop()).__module__

    worker.register_function("a::loop", loop_of_handler)
    assert worker.trigger({"function_id": "a::loop"}) == "uvloop"


def test_a_worker_gets_the_loop_of_python_where_the_extra_is_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ENGINE_SDK_FAST", "0")

    assert made().startswith("asyncio.")


def test_a_program_with_a_policy_of_its_own_keeps_its_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asyncio, "new_event_loop", OwnLoop)

    assert made() == "test_fast.OwnLoop"


def test_windows_keeps_the_loop_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    assert made().startswith("asyncio.")
