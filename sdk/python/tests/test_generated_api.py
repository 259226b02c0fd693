"""
A client that ``engine types --lang py`` wrote: it calls the right functions, and has types.

mypy checks the types, since an unused ``type: ignore`` is an error. The client is written by
``tests/types/live_functions.ts`` of the project.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conftest import Connect
from engine_sdk import Worker
from fakes import FakeEngine
from generated_api import Api, MathAddPayload


@pytest.fixture
def api(engine: FakeEngine, connect: Connect) -> Api:
    worker = connect(engine)
    for function_id in ("math::add", "a::b", "a::b::name", "my-shop::price.of", "odd::class"):
        worker.register_function(function_id, lambda payload, name=function_id: [name, payload])
    return Api(worker)


def test_methods_call_the_functions_they_were_made_of(api: Api) -> None:
    found: list[Any] = [
        api.math.add({"a": 1, "b": 2}, timeout_ms=5_000),
        api.a.b("x"),
        api.a.b(),
        api.a.b.name({"value": 1}),
        api.my_shop.price_of({"sku": "A1"}),
        api.odd.class_(),
        asyncio.run(api.a.b_async("y")),
        asyncio.run(api.a.b.name_async({"value": 2})),
    ]

    assert found == [
        ["math::add", {"a": 1, "b": 2}],
        ["a::b", "x"],
        ["a::b", None],
        ["a::b::name", {"value": 1}],
        ["my-shop::price.of", {"sku": "A1"}],
        ["odd::class", None],
        ["a::b", "y"],
        ["a::b::name", {"value": 2}],
    ]


def accepts(worker: Worker, api: Api) -> None:
    """Never run: mypy reads it."""
    payload: MathAddPayload = {"a": 1, "b": 2}
    total: float = Api(worker).math.add(payload)["c"]
    value: int = api.a.b.name({"value": 1, "children": [{"value": 2}]})["value"]
    text: str | None = api.a.b.c.d()
    price: dict[str, float] = api.my_shop.price_of({"sku": "A1", "count": 2})
    area: float = api.shapes.area({"kind": "square", "side-length": 1, "class": None})
    circles = api.shapes.list({"page": {"size": 1}, "more": 2})
    radius = None if circles[0] is None else circles[0]["radius"]
    api.shapes.corner([1, 2])
    print(total, value, text, price, area, radius, api.odd.str().upper())


def rejects(api: Api) -> None:
    """Never run: mypy reads it."""
    api.math.add({"a": 1})  # type: ignore[typeddict-item]
    api.math.add({"a": 1, "b": "2"})  # type: ignore[typeddict-item]
    api.math.add({"a": 1, "b": 2}, timeout="5")  # type: ignore[call-arg]
    api.math.sub({"a": 1, "b": 2})  # type: ignore[attr-defined]
    api.a.b("z")  # type: ignore[arg-type]
    api.math.add({"a": 1, "b": 2})["d"]  # type: ignore[typeddict-item]
