"""What a worker reports of its handlers: threads, calls that wait, handlers that are late."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from engine_sdk._codec import Invocation
from engine_sdk._handlers import LATE_FUNCTIONS_MAX, Runner
from engine_sdk._otlp import Gauge, encode_gauge
from engine_sdk._registrations import Function
from engine_sdk._threads import ThreadPool
from fakes import LIMIT_S


class Work:
    """A runner whose handlers wait until they are released, and a clock."""

    def __init__(self, threads: int) -> None:
        self.now = 0.0
        self.release = threading.Event()
        self.begun = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        session: Any = self
        loop = asyncio.new_event_loop()
        self.pool = ThreadPool(threads)
        self.runner = Runner(loop, session, self.pool, lambda work: work(), lambda: self.now)
        loop.close()

    def finish(self, *_: Any) -> None:
        self.ended.release()

    def call(self, function_id: str, timeout_ms: float | None, starts: bool = True) -> None:
        invocation = Invocation(
            None, function_id, None, None, timeout_ms, timeout_ms, None, None, None, 1
        )
        function = Function(function_id, self._handle, False, None, None, None, None, None)
        self.runner.run(invocation, function)
        if starts:
            assert self.begun.acquire(timeout=LIMIT_S)

    def _handle(self, *_: Any) -> None:
        self.begun.release()
        self.release.wait(LIMIT_S)


def read(work: Work) -> dict[str, float]:
    return {gauge.function_id or gauge.name: gauge.value for gauge in work.runner.load()}


@pytest.fixture
def made() -> Any:
    works: list[Work] = []

    def make(threads: int) -> Work:
        works.append(Work(threads))
        return works[-1]

    yield make
    for work in works:
        work.release.set()
        work.pool.close()


def test_busy_threads_and_waiting_calls_are_counted(made: Callable[[int], Work]) -> None:
    work = made(2)
    work.call("py::a", None)
    work.call("py::a", None)
    work.call("py::b", 5_000, starts=False)

    work.now = 9_000  # The deadline of a call that has no thread yet is no late handler.
    assert read(work) == {
        "engine.handlers.waiting": 1,
        "engine.handlers.threads.busy": 2,
        "engine.handlers.threads.max": 2,
    }


def test_functions_that_run_past_their_deadline_are_named(made: Callable[[int], Work]) -> None:
    work = made(3)
    work.call("py::late", 1_000)
    work.call("py::late", 2_000)
    work.call("py::soon", 60_000)

    work.now = 36_000
    assert read(work)["py::late"] == 35
    assert "py::soon" not in read(work)

    work.release.set()
    for _ in range(3):
        assert work.ended.acquire(timeout=LIMIT_S)
    assert "py::late" not in read(work)


def test_the_latest_functions_are_reported(made: Callable[[int], Work]) -> None:
    work = made(LATE_FUNCTIONS_MAX + 5)
    for number in range(LATE_FUNCTIONS_MAX + 5):
        work.call(f"py::f{number}", 1_000 * (number + 1))

    work.now = 100_000
    late = [name for name in read(work) if name.startswith("py::")]
    assert late == [f"py::f{number}" for number in range(LATE_FUNCTIONS_MAX)]


def test_a_full_pool_is_logged_once_until_no_call_waits(
    made: Callable[[int], Work], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="engine_sdk")
    work = made(1)
    work.call("py::slow", 1_000)
    read(work)
    assert caplog.messages == []

    work.call("py::other", None, starts=False)
    work.now = 8_000
    read(work)
    read(work)
    assert caplog.messages == [
        "[engine] All 1 threads are busy, so 1 calls wait; py::slow runs 7 s past its deadline"
    ]


def test_a_gauge_about_a_function_names_it() -> None:
    text = encode_gauge(Gauge("engine.handlers.overdue", "s", 35, "py::late"), 1)
    assert '"attributes":[{"key":"engine.function.id","value":{"stringValue":"py::late"}}]' in text
    assert "attributes" not in encode_gauge(Gauge("x", "1", 1), 1)
