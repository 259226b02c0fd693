"""How a worker connects, reconnects and shuts down; triggers and log texts."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from conftest import QUICK, Connect
from engine_sdk import (
    EngineError,
    InitOptions,
    InvocationError,
    Logger,
    ReconnectOptions,
    TriggerAction,
    Worker,
    register_worker,
)
from engine_sdk._process import PROCESS
from fakes import LIMIT_S, FakeEngine


def wait_state(worker: Worker, wanted: str) -> None:
    reached = threading.Event()

    def listen(state: str) -> None:
        if state == wanted:
            reached.set()

    stop = worker.on_connection_state(listen)
    assert worker.connection_state == wanted or reached.wait(LIMIT_S)
    stop()
    stop()


def test_a_worker_says_who_it_is(
    connect: Connect, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE_WORKER_NAME", "from-env")
    monkeypatch.setenv("ENGINE_ISOLATION", "process")
    worker = connect(engine, worker_name=None, description="Adds", namespace="eu")

    data = engine.wait(lambda f: f.get("function_id") == "engine::workers::register")["data"]
    assert worker.name == data["name"] == "from-env"
    assert (data["runtime"], data["isolation"], data["namespace"]) == ("python", "process", "eu")
    assert data["description"] == "Adds"
    assert data["capabilities"] == ["cancel", "timeout", "progress", "batch"]


def test_a_worker_without_a_name_is_named_after_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Worker(None, InitOptions()).name.rpartition(":")[2].isdigit()


def test_a_worker_reconnects_and_registers_again(worker: Worker, engine: FakeEngine) -> None:
    states: list[str] = []
    worker.on_connection_state(states.append)
    worker.on_connection_state(lambda _: 1 / 0)
    worker.register_function("a::b", lambda payload: payload)
    assert worker.trigger({"function_id": "a::b", "payload": 1}) == 1
    before = len(engine.frames)

    engine.drop()
    engine.wait_dials(2)

    assert worker.trigger({"function_id": "a::b", "payload": 2}) == 2
    again = [frame["type"] for frame in engine.frames[before:]]
    assert again[:3] == ["reattach", "invokefunction", "registerfunction"]
    assert states[:2] == ["reconnecting", "connected"]


def test_a_sent_call_ends_when_the_connection_is_lost(worker: Worker, engine: FakeEngine) -> None:
    async def lose() -> None:
        call = asyncio.ensure_future(worker.trigger_async({"function_id": "silent"}))
        await asyncio.to_thread(engine.wait, lambda f: f.get("function_id") == "silent")
        engine.drop()
        await call

    with pytest.raises(InvocationError) as raised:
        asyncio.run(lose())
    assert raised.value.code == "invocation_stopped"


def test_a_call_made_without_a_connection_waits_for_one(
    connect: Connect, engine: FakeEngine
) -> None:
    engine.refuse = "connection refused"
    worker = Worker("ws://fake:1", InitOptions(reconnect=QUICK), engine.dial)
    threading.Thread(target=worker.start, daemon=True).start()
    try:
        engine.wait_dials(3)
        worker.register_function("a::b", lambda payload: payload)
        call = threading.Thread(
            target=lambda: results.append(worker.trigger({"function_id": "a::b", "payload": 7}))
        )
        results: list[Any] = []
        call.start()
        engine.refuse = None
        call.join(LIMIT_S)
        assert results == [7]
    finally:
        worker.shutdown()


def test_a_worker_gives_up_after_max_attempts(connect: Connect, engine: FakeEngine) -> None:
    engine.refuse = "HTTP 401"
    worker = connect(engine, reconnect=ReconnectOptions(first_ms=1, max_ms=1, max_attempts=3))

    wait_state(worker, "failed")
    with pytest.raises(InvocationError) as raised:
        worker.trigger({"function_id": "a::b"})

    assert raised.value.code == "engine_unreachable"
    assert "after 3 attempts: HTTP 401" in raised.value.message
    assert engine.dials == 3


def test_a_worker_the_engine_refuses_for_good_fails(worker: Worker, engine: FakeEngine) -> None:
    engine.send({"type": "registrationrejected", "code": "WORKER_NAMESPACE_CONFLICT"})

    wait_state(worker, "failed")
    assert engine.dials == 1


def test_shutdown_ends_calls_and_writes_what_was_queued(worker: Worker, engine: FakeEngine) -> None:
    async def leave() -> None:
        call = asyncio.ensure_future(worker.trigger_async({"function_id": "silent"}))
        await asyncio.to_thread(engine.wait, lambda f: f.get("function_id") == "silent")
        worker.trigger({"function_id": "last::word", "action": TriggerAction.Void()})
        await asyncio.to_thread(worker.shutdown)
        await call

    with pytest.raises(InvocationError, match="SHUTDOWN: engine client is shutting down"):
        asyncio.run(leave())
    assert any(frame.get("function_id") == "last::word" for frame in engine.frames)
    assert worker.connection_state == "disconnected"


def test_after_shutdown_nothing_is_called_and_nothing_hangs(worker: Worker) -> None:
    worker.shutdown()
    worker.shutdown()

    void = TriggerAction.Void()
    for request in ({"function_id": "a::b"}, {"function_id": "a::b", "action": void}):
        with pytest.raises(InvocationError, match="SHUTDOWN"):
            worker.trigger(request)  # type: ignore[arg-type]
        with pytest.raises(InvocationError, match="SHUTDOWN"):
            asyncio.run(worker.trigger_async(request))  # type: ignore[arg-type]
    worker.register_function("a::b", lambda _: None).unregister()
    Logger(worker).info("too late")


def test_shutdown_cancels_handlers_and_may_be_called_by_one(
    worker: Worker, engine: FakeEngine
) -> None:
    ended: list[str] = []

    async def waits(_: Any) -> None:
        try:
            await asyncio.sleep(LIMIT_S)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    worker.register_function("a::waits", waits)
    worker.register_function("a::leaves", lambda _: worker.shutdown())
    engine.send({"type": "invokefunction", "invocation_id": "e-1", "function_id": "a::waits"})

    with pytest.raises(InvocationError, match="SHUTDOWN"):
        worker.trigger({"function_id": "a::leaves"})
    worker._thread.join(LIMIT_S)
    assert ended == ["cancelled"]


def test_a_worker_is_a_context_manager(engine: FakeEngine) -> None:
    worker = Worker("ws://fake:1", InitOptions(), engine.dial)
    worker.start()

    with worker as same:
        assert same.connection_state == "connected"

    assert worker.connection_state == "disconnected"


def test_register_worker_refuses_an_invalid_address() -> None:
    with pytest.raises(EngineError, match="'ftp://h' is not an address of an engine"):
        register_worker("ftp://h")
    assert PROCESS.last is None


def test_a_trigger_is_asked_for_and_taken_back(worker: Worker, engine: FakeEngine) -> None:
    registration = worker.register_trigger(
        {"type": "http", "function_id": "a::b", "config": {"api_path": "/x"}, "metadata": 1}
    )
    registration.unregister()

    asked = engine.wait(lambda frame: frame["type"] == "registertrigger")
    ended = engine.wait(lambda frame: frame["type"] == "unregistertrigger")
    assert ended == {"type": "unregistertrigger", "id": registration.id, "trigger_type": "http"}
    assert asked["config"] == {"api_path": "/x"}


def test_a_message_is_published_and_a_subscription_is_heard(
    worker: Worker, engine: FakeEngine
) -> None:
    heard: list[Any] = []
    arrived = threading.Event()

    def hear(data: Any) -> None:
        heard.append(data)
        arrived.set()

    published: list[Any] = []
    worker.register_function("publish", published.append)
    subscription = worker.subscribe("orders.*", hear)
    worker.publish("orders.new", {"id": 7})
    asyncio.run(worker.publish_async("orders.new"))
    asked = engine.wait(lambda frame: frame["type"] == "registertrigger")
    call = '{"type":"invokefunction","invocation_id":"e-1","function_id":"%s","data":{"id":8}}'
    engine.send(call % asked["function_id"])

    assert arrived.wait(LIMIT_S)
    assert heard == [{"id": 8}]
    assert (asked["trigger_type"], asked["config"]) == ("subscribe", {"topic": "orders.*"})
    assert published == [
        {"topic": "orders.new", "data": {"id": 7}},
        {"topic": "orders.new", "data": None},
    ]
    subscription.unregister()
    engine.wait(lambda frame: frame["type"] == "unregistertrigger")
    engine.wait(lambda frame: frame["type"] == "unregisterfunction")
    with pytest.raises(EngineError, match="topic"):
        worker.subscribe("", hear)


def test_a_function_declares_its_queue(worker: Worker, engine: FakeEngine) -> None:
    function = worker.register_function("mail::send", print, queue={"max_retries": 5})

    asked = engine.wait(lambda frame: frame["type"] == "registertrigger")
    assert (asked["trigger_type"], asked["function_id"]) == ("queue", "mail::send")
    assert asked["config"] == {"max_retries": 5}
    function.unregister()
    engine.wait(lambda frame: frame["type"] == "unregistertrigger")
    engine.wait(lambda frame: frame["type"] == "unregisterfunction")


def test_messages_share_frames_where_the_engine_wants_it(connect: Connect) -> None:
    engine = FakeEngine(batch=True)
    worker = connect(engine)
    worker.register_function("a::b", lambda payload: payload)

    answers = [worker.trigger({"function_id": "a::b", "payload": n}) for n in range(3)]
    call = '{"type":"invokefunction","invocation_id":"e-%d","function_id":"a::b"}'
    engine.send(f"{call % 8}\n\nnot json\n{call % 9}")

    assert answers == [0, 1, 2]
    for id_ in ("e-8", "e-9"):
        engine.wait(lambda frame, id_=id_: frame.get("invocation_id") == id_)  # type: ignore[misc]


def test_a_function_with_a_url_is_registered_for_the_engine(
    worker: Worker, engine: FakeEngine
) -> None:
    worker.register_function("web::plain", {"url": "https://api.example.com/quote"})
    worker.register_function(
        "web::full",
        {
            "url": "http://127.0.0.1:8080/quote",
            "method": "PUT",
            "timeout_ms": 800,
            "headers": {"X-Tenant": "a"},
            "auth": {"type": "hmac", "secret_key": "QUOTES_SECRET"},
        },
        description="A quote",
    )

    plain = engine.wait(lambda f: f.get("id") == "web::plain")
    assert plain["invocation"] == {"url": "https://api.example.com/quote"}
    full = engine.wait(lambda f: f.get("id") == "web::full")
    assert full["description"] == "A quote"
    assert full["invocation"] == {
        "url": "http://127.0.0.1:8080/quote",
        "method": "PUT",
        "timeout_ms": 800,
        "headers": {"X-Tenant": "a"},
        "auth": {"type": "hmac", "secret_key": "QUOTES_SECRET"},
    }


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"url": ""},
        {"url": 7},
        {"url": "/quote"},
        {"url": "ftp://api.example.com/"},
        {"url": "https://api.example.com/", "timeoutMs": 5},
        {"url": "https://api.example.com/", "timeout_ms": 0},
        {"url": "https://api.example.com/", "timeout_ms": "5"},
        {"address": "https://api.example.com/"},
    ],
)
def test_a_wrong_url_is_refused_at_once(given: Any) -> None:
    worker = Worker(None, InitOptions())
    with pytest.raises(EngineError) as caught:
        worker.register_function("web::quote", given)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert "web::quote" in caught.value.message or "timeout" in caught.value.message


def test_a_call_of_a_function_with_a_url_is_not_for_its_worker(
    worker: Worker, engine: FakeEngine
) -> None:
    worker.register_function("web::quote", {"url": "https://api.example.com/quote"})
    engine.wait(lambda f: f.get("id") == "web::quote")

    engine.send({"type": "invokefunction", "invocation_id": "i", "function_id": "web::quote"})

    result = engine.wait(lambda f: f.get("invocation_id") == "i")
    assert result["error"]["code"] == "function_not_invokable"
