"""
An engine in the process of a test: functions are faked, and time passes when the test says so.

Example:
    from engine_sdk.testing import TestEngine, engine  # engine is a fixture of pytest


    def test_an_order_is_confirmed_by_mail(engine: TestEngine) -> None:
        import worker  # its register_worker() connects to the engine of each test

        engine.fake("mail::send", None)
        engine.call("orders::create", {"to": "a@b.c"})
        engine.assert_called("mail::send", {"to": "a@b.c"})

"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from ._errors import EngineError
from ._test_builtins import Job, Queues, Response, State, add_schedules, add_topics, send_request
from ._test_routing import LIMIT_S, Peer, Routing, SeenCall, json_copy, key_of
from ._testing_hook import offers

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._requests import EnqueueOptions
    from ._transport import Transport
    from ._worker import Worker

__all__ = ["FakeFunction", "Job", "Response", "SeenCall", "TestEngine", "engine"]

QUIET_S: Final = 0.05
"""Real time without any message after which handlers count as waiting for the test."""

START: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)
"""The time of a test, unless it sets one."""


class FakeFunction:
    """A function that a test provides."""

    def __init__(self, routing: Routing, function_id: str, namespace: str | None) -> None:
        self._routing = routing
        self._id = function_id
        self._key = key_of(namespace, function_id)
        self._from = len(routing.seen)

    @property
    def calls(self) -> list[SeenCall]:
        """Its calls so far."""
        return [call for call in self._routing.seen[self._from :] if call.function_id == self._id]

    def remove(self) -> None:
        """Remove it: a worker's function with this id is called again."""
        self._routing.fakes.pop(self._key, None)


class _Switchboard:
    """Connects the workers of this process to the engine of the present test."""

    def __init__(self) -> None:
        self.routing: Routing | None = None
        self._workers: list[Worker] = []

    async def dial(self) -> Transport:
        """Connect a worker to the present engine."""
        while self.routing is None:  # noqa: ASYNC110 - set in other threads
            await asyncio.sleep(0.01)  # Until the next test begins.
        return await self.routing.dial()

    def adopt(self, worker: Worker) -> None:
        """Remember a worker."""
        self._workers.append(worker)

    def switch(self, routing: Routing | None) -> None:
        """Connect all workers to another engine, and wait until they are."""
        old, self.routing = self.routing, routing
        self._workers = [worker for worker in self._workers if worker.is_alive]
        if routing is None:
            return
        for peer in list(old.peers if old else _last_peers):
            peer.drop()
        _last_peers.clear()
        limit = time.monotonic() + LIMIT_S
        while len(routing.peers) < len(self._workers) and time.monotonic() < limit:
            time.sleep(0.001)


_board = _Switchboard()
_last_peers: list[Peer] = []
"""Connections to an engine that has stopped; they stay until the next one starts."""


class TestEngine:
    """
    An engine for one test; as a context manager it stops at the end of the block.

    Until then each `register_worker` in this process connects to it, and workers of earlier tests
    have been connected to it.
    """

    __test__ = False  # pytest collects classes of this name.

    def __init__(
        self, *, now: datetime | float = START, queues: tuple[str, ...] | list[str] = ()
    ) -> None:
        """
        Start an engine.

        Args:
            now: The time at the beginning; a number is milliseconds since 1970.
            queues: Names of queues of the configuration that the test stands for.

        """
        start_ms = now.timestamp() * 1000 if isinstance(now, datetime) else now
        self._routing = Routing(start_ms)
        self._queues = Queues(self._routing, tuple(queues))
        State(self._routing)
        add_topics(self._routing)
        add_schedules(self._routing)
        if _board not in offers:
            offers.append(_board)
        _board.switch(self._routing)
        self._sync()

    def call(
        self,
        function_id: str,
        payload: Any = None,
        *,
        metadata: Any = None,
        namespace: str | None = None,
        timeout_ms: float | None = None,
    ) -> Any:
        """
        Call a function of a worker, a fake or a built-in one, such as ``state::get``.

        Raises:
            EngineError: What the function failed with; ``timeout`` after 20 s of real time.

        """
        self._sync()
        call = {"function_id": function_id, "payload": payload, "metadata": metadata}
        call |= {"namespace": namespace, "timeout_ms": timeout_ms}
        return self._wait(self._routing.call(call), function_id)

    def fake(
        self, function_id: str, implementation: Any, namespace: str | None = None
    ) -> FakeFunction:
        """
        Provide a function, in place of any worker's with this id.

        Args:
            function_id: Such as ``"mail::send"``.
            implementation: What it returns; or a callable, which gets the payload and may raise.
            namespace: Of the function.

        """
        made = FakeFunction(self._routing, function_id, namespace)
        with self._routing.lock:
            self._routing.fakes[key_of(namespace, function_id)] = (
                (lambda payload, _metadata: implementation(payload))
                if callable(implementation)
                else (lambda _payload, _metadata: implementation)
            )
            self._routing.function_added()
        return made

    def calls(self, function_id: str | None = None) -> list[SeenCall]:
        """Return the calls that came to a function so far, or to all functions."""
        return [call for call in self._routing.seen if function_id in (None, call.function_id)]

    def assert_called(self, function_id: str, payload: Any = None) -> None:
        """Fail unless a function was called with a payload that has these members."""
        calls = self.calls(function_id)
        if any(payload is None or _contains(call.payload, json_copy(payload)) for call in calls):
            return
        found = ", ".join(json.dumps(call.payload) for call in calls)
        how = "" if payload is None else f" with {json.dumps(payload)}"
        what = f"its calls: {found}" if calls else "it was not called"
        raise AssertionError(f"{function_id} was not called{how}; {what}")

    def assert_not_called(self, function_id: str) -> None:
        """Fail if a function was called."""
        payloads = ", ".join(json.dumps(call.payload) for call in self.calls(function_id))
        if payloads:
            raise AssertionError(f"{function_id} was called with {payloads}")

    def http(
        self, method: str, path: str, *, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send an HTTP request to the triggers, such as ``("POST", "/orders?dry=1")``."""
        self._sync()
        return send_request(self._routing, method, path, body, headers or {}, LIMIT_S)

    def enqueue(
        self,
        function_id: str,
        payload: Any = None,
        queue: str = "default",
        **options: Unpack[EnqueueOptions],
    ) -> Job:
        """Put a call into a queue, and wait until it has run, unless it is for later."""
        job = {**options, "queue": queue, "function_id": function_id, "data": payload}
        receipt = self.call("engine::queue::enqueue", job)
        self._quiet()
        return next(job for job in self._queues.jobs if job.id == receipt["messageReceiptId"])

    def jobs(self, queue: str | None = None) -> list[Job]:
        """Return the jobs of a queue, or of all, in the order in which they came."""
        return [job for job in self._queues.jobs if queue in (None, job.queue)]

    def publish(self, topic: str, data: Any = None) -> None:
        """Publish a message, and wait until its subscribers have handled it."""
        self.call("publish", {"topic": topic, "data": data})
        self.settle()

    def fire(
        self,
        trigger_type: str,
        payload: Any,
        *,
        function_id: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """
        Fire the triggers of any type, and wait until their functions have ended.

        Args:
            trigger_type: Such as one that a worker provides.
            payload: What the functions get.
            function_id: Only the triggers of this function.
            config: Only those with these members in their config.

        Raises:
            EngineError: ``trigger_not_found`` if there is none.

        """
        self._sync()
        found = [
            trigger
            for trigger in self._routing.triggers_of(trigger_type)
            if function_id in (None, trigger["function_id"])
            and _contains(trigger.get("config") or {}, json_copy(config or {}))
        ]
        if not found:
            text = f"No trigger of the type {trigger_type} fits"
            raise EngineError("trigger_not_found", text)
        for trigger in found:
            self._routing.fire(trigger, payload)
        self.settle()

    @property
    def now(self) -> float:
        """The time, in milliseconds since 1970."""
        return self._routing.wall_ms()

    def advance(self, ms: float) -> None:
        """Let time pass: what is due runs in its order, each after what it causes has ended."""
        self._quiet()
        until = self._routing.now_ms + ms
        while self._routing.step(until):
            self._quiet()
        self._quiet()

    def settle(self) -> None:
        """
        Wait until all calls have ended, also those of queues and triggers.

        Raises:
            EngineError: ``timeout`` if one has not ended after 20 s of real time.

        """
        limit = time.monotonic() + LIMIT_S
        self._quiet()
        while self._routing.open:
            if time.monotonic() > limit:
                ids = ", ".join(call.function_id for call in self._routing.open)
                hint = "if they wait for time to pass, call engine.advance(ms)"
                raise EngineError("timeout", f"Calls have not ended: {ids}; {hint}")
            time.sleep(0.001)

    def stop(self) -> None:
        """End the calls that run; workers wait for the engine of the next test."""
        if _board.routing is self._routing:
            _last_peers.extend(self._routing.peers)
            _board.switch(None)
            offers.remove(_board)
        self._routing.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait(self, future: Any, function_id: str) -> Any:
        try:
            return future.result(LIMIT_S)
        except concurrent.futures.TimeoutError:
            raise EngineError("timeout", f"{function_id} has not ended after 20 s") from None

    def _sync(self) -> None:
        """Wait until what workers have sent is handled."""
        for _ in range(3):  # Its post, the flush behind it, and what that caused.
            for peer in list(self._routing.peers):
                done = threading.Event()
                if not peer.loop.is_closed():
                    peer.loop.call_soon_threadsafe(done.set)
                    done.wait(LIMIT_S)

    def _quiet(self) -> None:
        """Wait until nothing happens any more, though handlers may wait for time to pass."""
        activity, since = -1, time.monotonic()
        while True:
            self._sync()
            is_quiet = activity == self._routing.activity
            if not is_quiet:
                activity, since = self._routing.activity, time.monotonic()
            elif not self._routing.open or time.monotonic() - since > QUIET_S:
                return
            time.sleep(0.001)


def _contains(value: Any, wanted: Any) -> bool:
    """Tell whether a value has all members of another one."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            name in value and _contains(value[name], each) for name, each in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_contains(a, b) for a, b in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


try:
    import pytest
except ImportError:  # The class is of use without it.
    pass
else:

    @pytest.fixture
    def engine() -> Iterator[TestEngine]:
        """Start an engine for one test."""
        with TestEngine() as started:
            yield started
