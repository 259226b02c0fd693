"""Calls and invocations of a worker, on an engine in memory."""

from __future__ import annotations

import asyncio
import datetime
import threading
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Connect
from engine_sdk import (
    CallContext,
    EngineError,
    InitOptions,
    InvocationError,
    TriggerAction,
    Worker,
    _handlers,
    is_timeout,
)
from engine_sdk._context import CURRENT
from fakes import LIMIT_S, FakeEngine


def test_a_sync_handler_answers_a_sync_call(worker: Worker) -> None:
    worker.register_function("math::add", lambda payload: {"c": payload["a"] + payload["b"]})

    request: Any = {"function_id": "math::add", "payload": {"a": 2, "b": 3}}
    assert worker.trigger(request) == {"c": 5}
    assert asyncio.run(worker.trigger_async(request)) == {"c": 5}


def test_a_coroutine_handler_calls_on_the_workers_own_loop(worker: Worker) -> None:
    async def twice(payload: int) -> int:
        one = await worker.trigger_async({"function_id": "math::one", "payload": payload})
        return int(one) * 2

    worker.register_function("math::one", lambda payload: payload + 1)
    worker.register_function("math::twice", twice)

    assert worker.trigger({"function_id": "math::twice", "payload": 4}) == 10


def test_a_result_of_none_is_left_out_and_arrives_as_none(
    worker: Worker, engine: FakeEngine
) -> None:
    worker.register_function("a::none", lambda _: None)

    assert worker.trigger({"function_id": "a::none"}) is None
    assert "result" not in engine.of_type("invocationresult")[0]


def test_enqueue_sends_the_queue_and_its_options(worker: Worker, engine: FakeEngine) -> None:
    worker.register_function("mail::send", lambda _: {"messageReceiptId": "r"})

    assert worker.enqueue("mail::send", {"to": "a"}, queue="mail", delay_ms=5)
    assert asyncio.run(worker.enqueue_async("mail::send"))

    first, second = [
        frame for frame in engine.of_type("invokefunction") if frame["function_id"] == "mail::send"
    ][:2]
    assert first["data"] == {"to": "a"}
    assert first["action"] == {"type": "enqueue", "queue": "mail", "delay_ms": 5}
    assert second["action"] == {"type": "enqueue", "queue": "default"}


def test_metadata_and_context_reach_a_handler(worker: Worker) -> None:
    def handler(payload: Any, metadata: Any, context: CallContext) -> Any:
        return [payload, metadata, context.function_id, (context.remaining_ms or 0) > 0]

    worker.register_function("a::b", handler)

    request: Any = {"function_id": "a::b", "payload": 1, "metadata": 2}
    assert worker.trigger(request) == [1, 2, "a::b", True]


def test_what_a_handler_printed_is_finished_when_it_ends(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[str] = []

    def note() -> None:
        context = CURRENT.get()
        ends.append("" if context is None else context.function_id)

    async def later(payload: int) -> int:
        raise EngineError("oops", "")

    monkeypatch.setattr(_handlers, "finish_output", note)
    worker.register_function("a::sync", lambda payload: payload)
    worker.register_function("a::async", later)

    worker.trigger({"function_id": "a::sync"})
    with pytest.raises(InvocationError):
        worker.trigger({"function_id": "a::async"})

    assert ends == ["a::sync", "a::async"]


def test_an_ordinary_function_may_return_a_coroutine(worker: Worker) -> None:
    async def later(payload: int) -> int:
        return payload + 1

    worker.register_function("a::b", lambda payload: later(payload))

    assert worker.trigger({"function_id": "a::b", "payload": 1}) == 2


def raise_(error: BaseException) -> Any:
    raise error


async def raise_async(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize("raiser", [raise_, raise_async])
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("boom"), "invocation_failed", "boom"),
        (EngineError("sold_out", "none left", {"left": 0}), "sold_out", "none left"),
        (SystemExit(1), "invocation_failed", "SystemExit: 1"),
        (KeyboardInterrupt(), "invocation_failed", "KeyboardInterrupt"),
        (GeneratorExit(), "invocation_failed", "GeneratorExit"),
        (StopIteration(), "invocation_failed", ""),
        (RecursionError("deep"), "invocation_failed", "deep"),
    ],
)
def test_any_exception_of_a_handler_ends_its_call_and_nothing_else(
    worker: Worker, raiser: Callable[..., Any], error: BaseException, code: str, message: str
) -> None:
    if raiser is raise_async:

        async def handler(_: Any) -> Any:
            await raise_async(error)

        worker.register_function("a::bad", handler)
    else:
        worker.register_function("a::bad", lambda _: raise_(error))
    worker.register_function("a::good", lambda _: "still here")

    with pytest.raises(InvocationError) as raised:
        worker.trigger({"function_id": "a::bad"})

    assert raised.value.code == code
    assert message in raised.value.message
    assert raised.value.details == getattr(error, "details", {})
    assert "Traceback" in str(raised.value.stacktrace)
    assert raised.value.function_id == "a::bad"
    assert raised.value.invocation_id
    assert worker.trigger({"function_id": "a::good"}) == "still here"


@pytest.mark.parametrize("value", [float("nan"), datetime.date(2025, 1, 1), {1, 2}, object()])
def test_a_result_json_cannot_hold_ends_the_call(worker: Worker, value: Any) -> None:
    async def later(_: Any) -> Any:
        return value

    worker.register_function("a::sync", lambda _: value)
    worker.register_function("a::async", later)

    for function_id in ("a::sync", "a::async"):
        with pytest.raises(InvocationError, match=f"Result of {function_id} cannot") as raised:
            worker.trigger({"function_id": function_id})
        assert raised.value.code == "serialization_error"


def test_an_unknown_function_fails_with_the_engines_words(worker: Worker) -> None:
    with pytest.raises(InvocationError) as raised:
        worker.trigger({"function_id": "no::such"})

    assert str(raised.value) == "function_not_found: Function no::such not found"


def test_a_function_taken_back_is_not_called_any_more(worker: Worker, engine: FakeEngine) -> None:
    registration = worker.register_function("a::b", lambda _: 1)
    assert registration.id == "a::b"

    registration.unregister()
    registration.unregister()

    with pytest.raises(InvocationError, match="Function not found"):
        worker.trigger({"function_id": "a::b"})
    assert len(engine.of_type("unregisterfunction")) == 1


def test_a_call_times_out_by_itself_when_the_engine_stays_silent(
    connect: Connect,
) -> None:
    engine = FakeEngine(capabilities=["cancel"])
    worker = connect(engine, timeout_ms=20)

    with pytest.raises(InvocationError) as raised:
        worker.trigger({"function_id": "silent"})

    assert str(raised.value) == "TIMEOUT: invocation timed out after 20ms"
    assert is_timeout(raised.value)
    assert engine.wait(lambda frame: frame["type"] == "cancelinvocation")["reason"] == "timeout"


def test_trigger_refuses_to_wait_on_the_loop_it_waits_for(worker: Worker) -> None:
    async def bad(_: Any) -> Any:
        return worker.trigger({"function_id": "a::b"})

    async def void(_: Any) -> Any:
        return worker.trigger({"function_id": "a::b", "action": TriggerAction.Void()})

    worker.register_function("a::bad", bad)
    worker.register_function("a::void", void)

    with pytest.raises(InvocationError, match="await worker"):
        worker.trigger({"function_id": "a::bad"})
    assert worker.trigger({"function_id": "a::void"}) is None


def test_a_void_call_is_over_at_once_and_runs(worker: Worker, engine: FakeEngine) -> None:
    ran = threading.Event()
    worker.register_function("a::b", lambda _: ran.set())
    request: Any = {"function_id": "a::b", "action": TriggerAction.Void()}

    assert worker.trigger(request) is None
    assert ran.wait(LIMIT_S)
    assert asyncio.run(worker.trigger_async(request)) is None
    frame = engine.wait(lambda frame: frame.get("function_id") == "a::b" and "action" in frame)
    assert "invocation_id" not in frame


@pytest.mark.parametrize("is_async", [True, False])
def test_progress_reaches_the_caller_in_order(worker: Worker, is_async: bool) -> None:
    def sync(_: Any, _metadata: Any, context: CallContext) -> str:
        for step in range(3):
            context.progress(step)
        return "done"

    async def coroutine(payload: Any, metadata: Any, context: CallContext) -> str:
        return sync(payload, metadata, context)

    worker.register_function("a::b", coroutine if is_async else sync)
    progress: list[Any] = []
    threads: set[int] = set()

    def hear(data: Any) -> None:
        progress.append(data)
        threads.add(threading.get_ident())

    request: Any = {"function_id": "a::b", "on_progress": hear}
    assert worker.trigger(request) == "done"
    assert asyncio.run(worker.trigger_async(request)) == "done"
    assert progress == [0, 1, 2, 0, 1, 2]
    assert threads == {threading.get_ident()}


def test_a_listener_for_progress_that_fails_cancels_the_call(
    worker: Worker, engine: FakeEngine
) -> None:
    def handler(_: Any, _metadata: Any, context: CallContext) -> None:
        context.progress(1)
        context.wait_cancelled(LIMIT_S)

    worker.register_function("a::b", handler)

    with pytest.raises(ZeroDivisionError):
        worker.trigger({"function_id": "a::b", "on_progress": lambda data: data / 0})
    engine.wait(lambda frame: frame["type"] == "cancelinvocation")


def test_many_threads_may_call_at_once(worker: Worker) -> None:
    worker.register_function("a::b", lambda payload: payload)
    results: list[Any] = []

    def call(number: int) -> None:
        results.append(worker.trigger({"function_id": "a::b", "payload": number}))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)

    assert sorted(results) == list(range(50))


def test_sync_handlers_that_call_their_own_worker_do_not_wait_for_each_other(
    connect: Connect, engine: FakeEngine
) -> None:
    worker = connect(engine, max_threads=2)

    def down(payload: int) -> int:
        if payload == 0:
            return 0
        return 1 + int(worker.trigger({"function_id": "a::down", "payload": payload - 1}))

    worker.register_function("a::down", down)

    assert worker.trigger({"function_id": "a::down", "payload": 20}) == 20


def test_a_nested_call_takes_over_the_deadline_and_the_trace(
    worker: Worker, engine: FakeEngine
) -> None:
    worker.register_function("a::inner", lambda _: None)

    def outer(_: Any) -> None:
        worker.trigger({"function_id": "a::inner", "timeout_ms": 60_000})

    worker.register_function("a::outer", outer)
    trace = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    ids = {"invocation_id": "e-x", "function_id": "a::outer"}
    engine.send({"type": "invokefunction", **ids, **trace, "timeout_ms": 5_000, "data": 1})

    inner = engine.wait(
        lambda frame: frame["type"] == "invokefunction" and frame["function_id"] == "a::inner"
    )
    assert 0 < inner["timeout_ms"] <= 5_000
    assert inner["traceparent"] == trace["traceparent"]
    answer = engine.wait(lambda frame: frame.get("invocation_id") == "e-x")
    assert answer["traceparent"] == trace["traceparent"]


def test_a_task_that_a_handler_left_running_has_its_own_timeout(
    worker: Worker, engine: FakeEngine
) -> None:
    go = asyncio.Event()
    tasks: list[asyncio.Task[Any]] = []

    async def behind() -> Any:
        await go.wait()
        return await worker.trigger_async({"function_id": "a::echo", "payload": 1})

    async def handler(_: Any) -> None:
        tasks.append(asyncio.ensure_future(behind()))

    async def release(_: Any) -> Any:
        go.set()
        return await tasks[0]

    worker.register_function("a::echo", lambda payload: payload)
    worker.register_function("a::starts", handler)
    worker.register_function("a::release", release)
    worker.trigger({"function_id": "a::starts", "timeout_ms": 5_000})
    engine.wait(lambda frame: frame["type"] == "invocationresult")

    worker.trigger({"function_id": "a::release", "timeout_ms": 20_000})

    calls = engine.of_type("invokefunction")
    echo = next(call for call in calls if call["function_id"] == "a::echo")
    assert echo["timeout_ms"] > 20_000


def test_cancelling_a_task_cancels_its_call_and_its_handler(
    worker: Worker, engine: FakeEngine
) -> None:
    started, cancelled = threading.Event(), threading.Event()

    async def handler(_: Any) -> None:
        started.set()
        try:
            await asyncio.sleep(LIMIT_S)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    worker.register_function("a::slow", handler)

    async def impatient() -> None:
        task = asyncio.ensure_future(worker.trigger_async({"function_id": "a::slow"}))
        await asyncio.to_thread(started.wait, LIMIT_S)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(impatient())
    assert cancelled.wait(LIMIT_S)
    answer = engine.wait(lambda frame: frame["type"] == "invocationresult")
    assert answer["error"]["code"] == "cancelled"


def test_a_sync_handler_sees_that_it_was_cancelled_and_its_own_call_ends(
    worker: Worker, engine: FakeEngine
) -> None:
    seen: list[Any] = []

    def handler(_: Any, _metadata: Any, context: CallContext) -> None:
        try:
            worker.trigger({"function_id": "silent"})
        except InvocationError as error:
            seen.append((error.code, context.cancelled, context.cancel_reason))

    worker.register_function("a::slow", handler)
    engine.send({"type": "invokefunction", "invocation_id": "e-x", "function_id": "a::slow"})
    engine.wait(lambda frame: frame.get("function_id") == "silent")

    engine.send({"type": "cancelinvocation", "invocation_id": "e-x", "reason": "left"})

    engine.wait(lambda frame: frame["type"] == "invocationresult")
    assert seen == [("cancelled", True, "left")]


def test_a_call_of_a_run_that_was_cancelled_already_does_not_wait(
    worker: Worker, engine: FakeEngine
) -> None:
    def handler(_: Any, _metadata: Any, context: CallContext) -> Any:
        context.wait_cancelled(LIMIT_S)
        return worker.trigger({"function_id": "silent"})

    worker.register_function("a::slow", handler)
    engine.send({"type": "invokefunction", "invocation_id": "e-x", "function_id": "a::slow"})
    engine.send({"type": "cancelinvocation", "invocation_id": "e-x"})

    answer = engine.wait(lambda frame: frame["type"] == "invocationresult")
    assert answer["error"]["code"] == "cancelled"


def test_a_coroutine_cancelled_before_its_first_step_is_answered_as_well(
    worker: Worker, engine: FakeEngine
) -> None:
    async def handler(_: Any) -> None:
        raise AssertionError("never runs")

    worker.register_function("a::slow", handler)
    engine.wait(lambda frame: frame["type"] == "registerfunction")
    call = '{"type":"invokefunction","invocation_id":"e-x","function_id":"a::slow"}'
    cancel = '{"type":"cancelinvocation","invocation_id":"e-x"}'

    def both() -> None:
        worker._thread.session.received(call)
        worker._thread.session.received(cancel)

    worker._thread.post(both)

    answer = engine.wait(lambda frame: frame["type"] == "invocationresult")
    assert answer["error"]["code"] == "cancelled"


def test_calls_fail_at_once_while_the_engine_is_away_when_they_must_not_wait() -> None:
    engine = FakeEngine()
    options = InitOptions(worker_name="w", when_disconnected="fail")
    worker = Worker("ws://fake:1", options, engine.dial)
    worker.start()
    try:
        gone = threading.Event()
        worker.on_connection_state(lambda state: gone.set() if state == "reconnecting" else None)
        engine.refuse = "gone"
        engine.drop()
        assert gone.wait(LIMIT_S)

        for action in (None, TriggerAction.Void()):
            with pytest.raises(InvocationError) as caught:
                worker.trigger({"function_id": "a::b", "action": action})
            assert (caught.value.code, caught.value.retryable) == ("engine_unreachable", True)
    finally:
        worker.shutdown()


def test_when_disconnected_is_wait_or_fail() -> None:
    with pytest.raises(EngineError, match="'wait' or 'fail'"):
        InitOptions(when_disconnected="queue")  # type: ignore[arg-type]


def test_a_registration_over_256_kib_is_refused_at_once() -> None:
    worker = Worker("ws://fake:1", InitOptions(), FakeEngine().dial)

    with pytest.raises(EngineError, match="The registration of a::b takes 262"):
        worker.register_function("a::b", lambda payload: payload, metadata="x" * 262_144)
