"""Calls that nobody wants any more, on an engine in memory."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from engine_sdk import CallContext, InvocationError, Worker
from fakes import LIMIT_S, FakeEngine


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
