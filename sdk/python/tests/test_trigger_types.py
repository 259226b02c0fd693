"""Trigger types that a worker provides, on an engine in memory."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from engine_sdk import TriggerInstance, Worker
from fakes import LIMIT_S, FakeEngine

TRIGGER = {"trigger_type": "watch", "function_id": "f", "config": {}}


def test_a_provider_starts_and_stops_triggers(worker: Worker, engine: FakeEngine) -> None:
    happened: list[Any] = []

    class Watch:
        async def register_trigger(self, trigger: TriggerInstance) -> None:
            if trigger.config == {"bad": True}:
                raise ValueError("no such directory")
            happened.append(trigger)

        def unregister_trigger(self, trigger: TriggerInstance) -> None:
            happened.append(trigger.id)
            ended.set()

    ended = threading.Event()
    registration = worker.register_trigger_type({"id": "watch", "description": "W"}, Watch())
    ids = {"trigger_type": "watch", "function_id": "f"}
    engine.send({"type": "registertrigger", "id": "t1", **ids, "config": {"d": 1}})
    engine.send({"type": "registertrigger", "id": "t2", **ids, "config": {"bad": True}})

    good = engine.wait(lambda f: f["type"] == "triggerregistrationresult" and f["id"] == "t1")
    bad = engine.wait(lambda f: f["type"] == "triggerregistrationresult" and f["id"] == "t2")
    engine.send({"type": "unregistertrigger", "id": "t2", "trigger_type": "watch"})
    engine.send({"type": "unregistertrigger", "id": "t1", "trigger_type": "watch"})

    assert "error" not in good
    message = "no such directory"
    assert bad["error"] == {"code": "trigger_registration_failed", "message": message}
    assert ended.wait(LIMIT_S)
    assert happened == [TriggerInstance("t1", "watch", "f", {"d": 1}), "t1"]
    registration.unregister()
    engine.wait(lambda frame: frame["type"] == "unregistertriggertype")


def test_a_lost_connection_stops_the_triggers_of_a_provider(
    worker: Worker, engine: FakeEngine
) -> None:
    started: list[str] = []
    ended = threading.Event()
    worker.register_trigger_type(
        {"id": "watch", "description": "W"}, lambda t: started.append(t.id), lambda _: ended.set()
    )
    trigger = {"trigger_type": "watch", "function_id": "f", "config": {}}
    engine.send({"type": "registertrigger", "id": "t1", **trigger})
    engine.wait(lambda frame: frame["type"] == "triggerregistrationresult")

    engine.drop()

    assert ended.wait(LIMIT_S)
    assert started == ["t1"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_trigger_ended_during_its_start_is_stopped_after_it_if_it_went_well(
    worker: Worker, engine: FakeEngine, fails: bool
) -> None:
    happened: list[str] = []
    starting, go = threading.Event(), threading.Event()

    def start(trigger: TriggerInstance) -> None:
        if trigger.id == "other":
            return
        starting.set()
        go.wait(LIMIT_S)
        happened.append("started")
        if fails:
            raise ValueError("no such directory")

    def stop(trigger: TriggerInstance) -> None:
        happened.append(f"stopped {trigger.id}")

    worker.register_trigger_type({"id": "watch", "description": "W"}, start, stop)
    engine.send({"type": "registertrigger", "id": "t1", **TRIGGER})
    assert starting.wait(LIMIT_S)

    engine.send({"type": "unregistertrigger", "id": "t1", "trigger_type": "watch"})
    engine.send({"type": "registertrigger", "id": "other", **TRIGGER})
    engine.wait(lambda f: f["type"] == "triggerregistrationresult" and f["id"] == "other")
    assert happened == []
    go.set()
    engine.wait(lambda f: f["type"] == "triggerregistrationresult" and f["id"] == "t1")
    worker.shutdown()

    expected = ["started"] if fails else ["started", "stopped t1"]
    assert [entry for entry in happened if "other" not in entry] == expected


def test_the_same_id_again_replaces_what_was_there(worker: Worker, engine: FakeEngine) -> None:
    happened: list[Any] = []

    async def start(trigger: TriggerInstance) -> None:
        happened.append(("start", trigger.config))

    async def stop(trigger: TriggerInstance) -> None:
        await asyncio.sleep(0)
        happened.append(("stop", trigger.id))

    worker.register_trigger_type({"id": "watch", "description": "W"}, start, stop)
    engine.send({"type": "registertrigger", "id": "t1", **TRIGGER, "config": {"n": 1}})
    engine.wait(lambda frame: frame["type"] == "triggerregistrationresult")
    engine.send({"type": "registertrigger", "id": "t1", **TRIGGER, "config": {"n": 2}})
    engine.wait(lambda _: len(engine.of_type("triggerregistrationresult")) == 2)

    assert happened == [("start", {"n": 1}), ("stop", "t1"), ("start", {"n": 2})]


async def exit_async(_: TriggerInstance) -> None:
    raise SystemExit("bye")


def exit_sync(_: TriggerInstance) -> None:
    raise SystemExit("bye")


@pytest.mark.parametrize("start", [exit_async, exit_sync, lambda trigger: exit_async(trigger)])
def test_a_provider_that_exits_refuses_its_trigger_and_nothing_else(
    worker: Worker, engine: FakeEngine, start: Any
) -> None:
    worker.register_trigger_type({"id": "watch", "description": "W"}, start, print)
    engine.send({"type": "registertrigger", "id": "t1", **TRIGGER})

    answer = engine.wait(lambda frame: frame["type"] == "triggerregistrationresult")
    assert answer["error"]["message"] == "SystemExit: bye"
    worker.register_function("a::b", lambda payload: payload)
    assert worker.trigger({"function_id": "a::b", "payload": 1}) == 1


def test_a_trigger_that_cannot_be_ended_is_logged(
    worker: Worker, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    worker.register_trigger_type({"id": "watch", "description": "W"}, lambda _: 1, lambda _: 1 / 0)
    engine.send({"type": "registertrigger", "id": "t1", **TRIGGER})
    engine.wait(lambda frame: frame["type"] == "triggerregistrationresult")

    worker.shutdown()

    assert "Could not end trigger t1" in caplog.text


def test_a_trigger_id_that_is_used_again_waits_for_its_stop(
    worker: Worker, engine: FakeEngine
) -> None:
    happened: list[str] = []
    ending, may_end, started_again = threading.Event(), threading.Event(), threading.Event()

    def start(trigger: TriggerInstance) -> None:
        happened.append(f"start {trigger.id}")
        if ending.is_set() and trigger.id == "t1":
            started_again.set()

    def stop(trigger: TriggerInstance) -> None:
        ending.set()
        assert may_end.wait(LIMIT_S)
        happened.append(f"stop {trigger.id}")

    worker.register_trigger_type({"id": "watch", "description": "W"}, start, stop)
    engine.send({"type": "registertrigger", "id": "t1", **TRIGGER})
    engine.wait(lambda frame: frame["type"] == "triggerregistrationresult")
    engine.send({"type": "unregistertrigger", "id": "t1", "trigger_type": "watch"})
    assert ending.wait(LIMIT_S)

    engine.send({"type": "registertrigger", "id": "t1", **TRIGGER})
    engine.send({"type": "registertrigger", "id": "t2", **TRIGGER})
    engine.wait(lambda f: f["type"] == "triggerregistrationresult" and f["id"] == "t2")
    may_end.set()

    assert started_again.wait(LIMIT_S)
    assert happened == ["start t1", "start t2", "stop t1", "start t1"]
