"""Handlers with type hints: formats, conversion of payloads and results, and what is rejected."""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NewType, TypedDict

import pytest
from pydantic import BaseModel, Field
from typing_extensions import NotRequired

from conftest import Connect
from engine_sdk import CallContext, EngineError, InvocationError
from engine_sdk._context import CallContext as Context
from engine_sdk._shapes import Faults, shape_of
from engine_sdk._typed import plan_function, types_of
from fakes import FakeEngine


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Pair:
    """Two numbers."""

    a: int
    b: float = 1.0


@dataclass
class Order:
    pairs: list[Pair]
    colour: Colour
    kind: Literal["new", 2, None] = "new"
    tags: dict[str, str] = field(default_factory=dict)


class _Required(TypedDict):
    name: str


class Person(_Required, total=False):
    age: int | None


class Loose(TypedDict):
    name: str
    nick: NotRequired[str]


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


class Item(BaseModel):
    sku: str = Field(min_length=2)
    count: int = 1


class Basket(BaseModel):
    items: list[Item]


@dataclass
class Positive:
    n: int

    def __post_init__(self) -> None:
        if self.n <= 0:
            raise ValueError("n must be above 0")


UserId = NewType("UserId", str)


def schema(hint: Any) -> Any:
    return shape_of(hint).schema


def load(hint: Any, value: Any) -> Any:
    faults = Faults()
    converted = shape_of(hint).convert(value, "", faults, "in")
    return converted if not faults else [*faults]


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int, {"type": "integer"}),
        (None, {"type": "null"}),
        (Any, {}),
        (CallContext, {}),
        (UserId, {"type": "string"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array"}),
        (dict[str, Any], {"type": "object"}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (bool | None, {"anyOf": [{"type": "boolean"}, {"type": "null"}]}),
        (int | Any, {}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", "blue"]}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (
            Pair,
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "number"}},
                "required": ["a"],
                "description": "Two numbers.",
            },
        ),
        (
            Person,
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "age": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                },
                "required": ["name"],
            },
        ),
    ],
)
def test_a_hint_has_a_schema(hint: Any, expected: Any) -> None:
    assert schema(hint) == expected


def test_a_type_that_contains_itself_is_a_definition() -> None:
    tree = schema(Tree)

    assert tree["$ref"] == "#/$defs/Tree"
    assert tree["$defs"]["Tree"]["properties"]["children"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Tree"},
    }
    assert load(Tree, {"value": 1, "children": [{"value": 2}]}) == Tree(1, [Tree(2)])
    bad = {"value": 1, "children": [{"value": 2, "children": [{}]}]}
    assert load(Tree, bad) == [("/children/0/children/0", "must have the member value")]


def test_values_become_what_the_hint_says() -> None:
    order = load(
        Order, {"pairs": [{"a": 2.0, "b": 3}], "colour": "blue", "kind": None, "unknown": 1}
    )

    assert order == Order([Pair(2, 3)], Colour.BLUE, None)
    assert load(tuple[int, ...], [1, 2]) == (1, 2)
    assert load(Person, {"name": "Ann", "more": 1}) == {"name": "Ann", "more": 1}
    assert load(Basket, {"items": [{"sku": "A1"}]}) == Basket(items=[Item(sku="A1")])
    assert load(int | Pair, {"a": 1}) == Pair(1)


@pytest.mark.parametrize(
    ("hint", "value", "faults"),
    [
        (int, True, [("", "must be an integer, is a boolean")]),
        (int, 1.5, [("", "must be an integer, is a number")]),
        (str, None, [("", "must be a string, is null")]),
        (Literal[1], True, [("", "must be one of 1")]),
        (Colour, [], [("", "must be one of 'red', 'blue'")]),
        (dict[str, int], {"a/b~": "x"}, [("/a~1b~0", "must be an integer, is a string")]),
        (
            Pair,
            {"b": "x"},
            [("", "must have the member a"), ("/b", "must be a number, is a string")],
        ),
        (list[Pair], [{"a": 1}, 7], [("/1", "must be an object, is an integer")]),
        (Pair | None, {"a": "x"}, [("/a", "must be an integer, is a string")]),
        (int | str, [], [("", "must fit one of 2 types, is an array")]),
        (tuple[int, str], [1], [("", "must be an array of 2 items")]),
        (Positive, {"n": 0}, [("", "n must be above 0")]),
        (
            Basket,
            {"items": [{"sku": "A"}]},
            [("/items/0/sku", "String should have at least 2 characters")],
        ),
    ],
)
def test_a_fault_has_its_path(hint: Any, value: Any, faults: Any) -> None:
    assert load(hint, value) == faults


def test_faults_are_bounded() -> None:
    assert len(load(list[int], ["x"] * 50)) == 20


def test_a_member_that_need_not_be_there_may_be_a_string_hint() -> None:
    assert schema(Loose)["required"] == ["name"]


def test_formats_and_the_description_come_from_the_handler() -> None:
    def add(payload: Pair, metadata: Any = None) -> dict[str, float]:
        """
        Add two numbers.

        More about it.
        """
        return {"c": payload.a + payload.b}

    found = types_of(add, "math::add")

    assert found.request.schema["required"] == ["a"]
    assert found.response.schema["additionalProperties"] == {"type": "number"}
    assert found.summary == "Add two numbers."


class Adder:
    def add(self, payload: Pair) -> int:
        return payload.a

    def __call__(self, payload: Pair) -> int:
        return payload.a


def test_methods_and_callable_objects_have_types_lambdas_have_none() -> None:
    assert types_of(Adder().add, "a::b").request.schema["required"] == ["a"]
    assert types_of(Adder(), "a::b").response.schema == {"type": "integer"}
    assert types_of(lambda payload: payload, "a::b").request.accepts_all
    assert types_of(print, "a::b").request.accepts_all


def test_a_hint_that_cannot_be_read_is_logged_and_accepts_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @dataclass
    class Local:
        n: int

    def handle(payload: Local) -> int:
        return payload.n

    with caplog.at_level(logging.WARNING):
        found = types_of(handle, "a::b")

    assert found.request.accepts_all
    assert found.response.schema == {"type": "integer"}
    assert "The type of the payload of a::b is not checked: name 'Local'" in caplog.text


def plan(handler: Any, **options: Any) -> Any:
    given = dict.fromkeys(("description", "request_format", "response_format", "metadata"))
    return plan_function(
        "a::b", handler, **{**given, "namespace": None, "check_types": True, **options}
    )


def test_what_is_given_replaces_what_the_hints_say() -> None:
    def add(payload: Pair) -> int:
        """Add."""
        return payload.a

    own = plan(add, description="Mine", request_format={"type": "object"})
    unchecked = plan(add, check_types=False)

    assert (own.description, own.request_format) == ("Mine", '{"type":"object"}')
    assert own.call({"a": 1}, None, None) == 1, "the handler still gets a Pair"
    assert (unchecked.request_format, unchecked.description) == (None, None)


def test_a_call_gets_what_fits_and_its_caller_the_path_of_what_does_not(
    connect: Connect, engine: FakeEngine
) -> None:
    worker = connect(engine)

    def add(payload: Pair, _metadata: Any, context: Context) -> Pair:
        assert context.function_id == "math::add"
        return Pair(payload.a + 1)

    async def price(payload: Item) -> Item:
        return Item(sku=payload.sku, count=payload.count + 1)

    def wrong(payload: Any) -> Pair:
        return payload  # type: ignore[no-any-return]

    worker.register_function("math::add", add)
    worker.register_function("shop::price", price)
    worker.register_function("math::wrong", wrong)

    def call(function_id: str, payload: Any) -> Any:
        return worker.trigger({"function_id": function_id, "payload": payload})

    assert call("math::add", {"a": 1}) == {"a": 2, "b": 1.0}
    assert call("shop::price", {"sku": "A1"}) == {"sku": "A1", "count": 2}
    with pytest.raises(InvocationError) as raised:
        call("math::add", {"a": "1"})
    assert raised.value.code == "invalid_payload"
    assert raised.value.details == {
        "errors": [{"path": "/a", "message": "must be an integer, is a string"}]
    }
    with pytest.raises(InvocationError) as raised:
        call("math::wrong", {"a": 1, "b": []})
    assert raised.value.code == "invalid_result"
    frame = engine.wait(lambda frame: frame.get("id") == "math::add")
    assert frame["request_format"]["required"] == ["a"]


def test_an_ordinary_function_may_return_an_awaitable(connect: Connect, engine: FakeEngine) -> None:
    worker = connect(engine)

    async def later(payload: Any) -> Pair:
        return Pair(payload)

    def start(payload: int) -> Any:
        return later(payload)

    worker.register_function("math::later", later)
    worker.register_function("math::start", start)

    assert worker.trigger({"function_id": "math::later", "payload": 3}) == {"a": 3, "b": 1.0}
    with pytest.raises(EngineError, match="serialization_error"):
        worker.trigger({"function_id": "math::start", "payload": 3})
