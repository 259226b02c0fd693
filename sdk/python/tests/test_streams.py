"""Streams of a worker, on an engine in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine_sdk import EngineError, InvocationError, TriggerAction, Worker
from fakes import FakeEngine

PLACE = {"stream_name": "chat", "group_id": "room-1"}


@pytest.fixture
def asked(worker: Worker) -> list[tuple[str, Any]]:
    """What the functions of a stream were asked; all but two answer nothing."""
    calls: list[tuple[str, Any]] = []
    answers = {"delete": {"old_value": {"n": 1}}, "list_groups": ["room-1"]}

    def serve(op: str) -> None:
        def answer(payload: Any) -> Any:
            calls.append((op, payload))
            return answers.get(op)

        worker.register_function(f"stream::{op}", answer)

    for op in ("get", "set", "delete", "update", "list", "list_groups", "send"):
        serve(op)
    return calls


OPS = [{"type": "increment", "path": "n", "by": 1}]
EXPECTED = [
    ("get", {**PLACE, "item_id": "m1"}),
    ("set", {**PLACE, "item_id": "m1", "data": {"n": 1}}),
    ("set", {**PLACE, "item_id": "m1", "data": None, "ttl_ms": 5}),
    ("update", {**PLACE, "item_id": "m1", "ops": OPS}),
    ("delete", {**PLACE, "item_id": "m1"}),
    ("list", PLACE),
    ("list_groups", {"stream_name": "chat"}),
    ("send", {**PLACE, "type": "typing", "data": {"by": "ann"}, "id": None}),
    ("send", {**PLACE, "type": "seen", "data": None, "id": "m1"}),
]


def test_a_group_calls_the_functions_of_its_stream(
    worker: Worker, asked: list[tuple[str, Any]]
) -> None:
    chat = worker.stream("chat")
    room = chat.group("room-1")

    assert room.get("m1") is None
    room.set("m1", {"n": 1})
    room.set("m1", None, ttl_ms=5)
    room.update("m1", OPS)
    assert room.delete("m1") == {"n": 1}
    room.list()
    assert chat.groups() == ["room-1"]
    room.send("typing", {"by": "ann"})
    room.send("seen", item_id="m1")

    assert asked == EXPECTED
    assert (chat.name, room.stream, room.id) == ("chat", "chat", "room-1")


def test_coroutines_do_the_same(worker: Worker, asked: list[tuple[str, Any]]) -> None:
    chat = worker.stream("chat")
    room = chat.group("room-1")

    async def run() -> None:
        assert await room.get_async("m1") is None
        await room.set_async("m1", {"n": 1})
        await room.set_async("m1", None, ttl_ms=5)
        await room.update_async("m1", OPS)
        assert await room.delete_async("m1") == {"n": 1}
        await room.list_async()
        assert await chat.groups_async() == ["room-1"]
        await room.send_async("typing", {"by": "ann"})
        await room.send_async("seen", item_id="m1")

    asyncio.run(run())

    assert asked == EXPECTED


def test_entries_reads_all_items_with_their_ids_page_by_page(worker: Worker) -> None:
    asked: list[Any] = []

    def list_items(payload: Any) -> Any:
        asked.append(payload)
        if "cursor" in payload:
            return {"items": [{"id": "b", "data": 2}]}
        return {"items": [{"id": "a", "data": 1}], "cursor": "a"}

    worker.register_function("stream::list_items", list_items)
    room = worker.stream("chat").group("room-1")

    async def run() -> list[Any]:
        return [entry async for entry in room.entries_async("p")]

    assert list(room.entries("p")) == [("a", 1), ("b", 2)]
    assert asyncio.run(run()) == [("a", 1), ("b", 2)]
    first = {**PLACE, "prefix": "p", "limit": 500}
    assert asked == [first, {**first, "cursor": "a"}] * 2


def test_a_handler_of_events_has_a_function_and_a_trigger_of_its_own(
    worker: Worker, engine: FakeEngine
) -> None:
    chat = worker.stream("chat")
    own = chat.on_event(lambda _: None, group_id="a", item_id="m", metadata={"why": "demo"})
    chat.on_event(lambda _: None, function_id="chat::heard", condition_function_id="chat::is")

    engine.wait(lambda frame: frame.get("function_id") == "chat::heard")
    first, second = engine.of_type("registertrigger")
    assert (first["trigger_type"], first["id"]) == ("stream", own.id)
    assert first["config"] == {"stream_name": "chat", "group_id": "a", "item_id": "m"}
    assert first["metadata"] == {"why": "demo"}
    assert first["function_id"].startswith("stream-event::")
    assert second["config"] == {"stream_name": "chat", "condition_function_id": "chat::is"}
    function = engine.wait(lambda frame: frame.get("id") == first["function_id"])
    assert function["metadata"] == {"internal": True}
    own.unregister()
    engine.wait(lambda frame: frame["type"] == "unregistertrigger")
    engine.wait(lambda frame: frame["type"] == "unregisterfunction")


async def later(subscriber: Any) -> Any:
    return ANSWERS[subscriber["group_id"]]


def at_once(subscriber: Any) -> Any:
    return ANSWERS[subscriber["group_id"]]


ANSWERS: dict[str, Any] = {
    "open": None,
    "also": {"unauthorized": False},
    "no": False,
    "said": {"unauthorized": True},
}


@pytest.mark.parametrize("handler", [at_once, later, lambda subscriber: later(subscriber)])
def test_a_handler_of_joins_refuses_by_false_and_for_its_stream_only(
    worker: Worker, engine: FakeEngine, handler: Any
) -> None:
    worker.stream("chat").on_join(handler, function_id="chat::join")
    trigger = engine.wait(lambda frame: frame["type"] == "registertrigger")
    assert (trigger["trigger_type"], trigger["config"]) == ("stream:join", {"stream_name": "chat"})

    def ask(group_id: str, stream_name: str = "chat") -> Any:
        payload = {"stream_name": stream_name, "group_id": group_id}
        return worker.trigger({"function_id": "chat::join", "payload": payload})

    refused = {"unauthorized": True}
    assert [ask(group) for group in ANSWERS] == [None, {"unauthorized": False}, refused, refused]
    assert ask("no", "news") is None  # An engine that does not filter asks about every stream.
    with pytest.raises(InvocationError):
        ask("unknown")


def test_a_handler_of_leaves_hears_of_its_stream_only(worker: Worker, engine: FakeEngine) -> None:
    left: list[str] = []
    worker.stream("chat").on_leave(lambda it: left.append(it["group_id"]), function_id="chat::left")
    trigger = engine.wait(lambda frame: frame["type"] == "registertrigger")
    assert trigger["trigger_type"] == "stream:leave"

    for stream_name in ("chat", "news"):
        payload = {"stream_name": stream_name, "group_id": stream_name}
        worker.trigger({"function_id": "chat::left", "payload": payload})

    assert left == ["chat"]


class Rows:
    """A source that keeps items in a dict."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}

    def get(self, place: Any) -> Any:
        return self.rows.get(place["item_id"])

    async def set(self, request: Any) -> Any:
        old = self.rows.get(request["item_id"])
        self.rows[request["item_id"]] = request["data"]
        return {"old_value": old, "new_value": request["data"]}

    def delete(self, place: Any) -> Any:
        return {"old_value": self.rows.pop(place["item_id"], None)}

    def list(self, group: Any) -> Any:
        return list(self.rows.values())

    def list_groups(self, stream: Any) -> Any:
        return ["all"]


def test_a_source_serves_the_functions_of_its_stream(worker: Worker, engine: FakeEngine) -> None:
    registration = worker.create_stream("users", Rows())

    def ask(op: str, **payload: Any) -> Any:
        return worker.trigger({"function_id": f"stream::{op}(users)", "payload": payload})

    assert ask("set", item_id="a", data=1) == {"old_value": None, "new_value": 1}
    assert (ask("get", item_id="a"), ask("list"), ask("list_groups")) == (1, [1], ["all"])
    assert ask("delete", item_id="a") == {"old_value": 1}
    registered = [frame["id"] for frame in engine.of_type("registerfunction")]
    assert "stream::update(users)" not in registered
    registration.unregister()
    worker.trigger({"function_id": "none", "action": TriggerAction.Void()})
    engine.wait(lambda frame: frame.get("function_id") == "none")
    gone = [frame["id"] for frame in engine.of_type("unregisterfunction")]
    assert sorted(gone) == sorted(registered)


def test_update_is_served_where_the_source_has_it(worker: Worker) -> None:
    class Updated(Rows):
        def update(self, request: Any) -> Any:
            return {"new_value": request["ops"]}

    worker.create_stream("users", Updated())

    payload = {"item_id": "a", "ops": OPS}
    request: Any = {"function_id": "stream::update(users)", "payload": payload}
    assert worker.trigger(request) == {"new_value": OPS}


def test_what_does_not_fit_is_refused_before_anything_is_registered(
    worker: Worker, engine: FakeEngine
) -> None:
    class Short:
        def get(self, place: Any) -> Any: ...

    class Wrong(Rows):
        list_groups: Any = 7

    wrong: list[Any] = [
        lambda: worker.stream(""),
        lambda: worker.stream("chat").group(""),
        lambda: worker.stream("chat").on_join(7),  # type: ignore[arg-type]
        lambda: worker.create_stream("", Rows()),
        lambda: worker.create_stream("users", Short()),  # type: ignore[arg-type]
        lambda: worker.create_stream("users", Wrong()),
    ]

    for each in wrong:
        with pytest.raises(EngineError) as raised:
            each()
        assert raised.value.code == "INVALID_ARGUMENTS"
    assert engine.of_type("registerfunction") == []
