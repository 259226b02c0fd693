"""Fakes of the engine, the clock and the host of a session."""

from __future__ import annotations

import asyncio
import json
import selectors
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from engine_sdk._calls import Call
from engine_sdk._codec import Invocation, TriggerInstance
from engine_sdk._handlers import bind
from engine_sdk._registrations import Function, Trigger, TriggerType
from engine_sdk._session import Session
from engine_sdk._transport import ConnectionLost, Transport

Result = TypeVar("Result")

LIMIT_S = 20.0
"""Longest wait for something that takes milliseconds on an idle machine."""

ANNOUNCEMENT = '{"type":"invokefunction","function_id":"engine::workers::register"}'
REGISTERED = {
    "type": "workerregistered",
    "worker_id": "w1",
    "reattach_token": "t1",
    "capabilities": ["cancel", "timeout", "progress"],
}


class FakeClock:
    """A clock that a test advances, in milliseconds."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class _VirtualSelector(selectors.SelectSelector):
    """Advances the time of a loop instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            assert timeout is not None, "nothing is left to wait for"
            self.now += max(0.0, timeout)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only when nothing else is to be done; no sockets, no threads."""

    def __init__(self) -> None:
        self._virtual = _VirtualSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run_virtual(work: Coroutine[Any, Any, Result], limit_s: float = 10_000) -> Result:
    """Run a coroutine in virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(asyncio.wait_for(work, limit_s))
    finally:
        loop.close()


class FakeHost:
    """Records what a session asks of its host."""

    def __init__(self) -> None:
        self.invocations: list[Invocation] = []
        self.aborted: list[tuple[Invocation, str | None]] = []
        self.started_triggers: list[tuple[TriggerInstance, int]] = []
        self.stopped_triggers: list[str] = []
        self.stopped_types: list[str] = []
        self.lost = 0
        self.refusals: list[str] = []
        self.stalls = 0
        self.deadlines: list[float] = []

    def output_ready(self) -> None:
        return

    def deadline_set(self, at: float) -> None:
        self.deadlines.append(at)

    def run_function(self, invocation: Invocation, function: Function) -> None:
        self.invocations.append(invocation)

    def abort(self, invocation: Invocation, reason: str | None) -> None:
        self.aborted.append((invocation, reason))

    def start_trigger(
        self, trigger: TriggerInstance, trigger_type: TriggerType, connection: int
    ) -> None:
        self.started_triggers.append((trigger, connection))

    def stop_trigger(self, trigger_id: str) -> None:
        self.stopped_triggers.append(trigger_id)

    def stop_triggers(self, trigger_type: TriggerType) -> None:
        self.stopped_types.append(trigger_type.id)

    def connection_lost(self) -> None:
        self.lost += 1

    def refused(self, reason: str) -> None:
        self.refusals.append(reason)

    def stalled(self) -> None:
        self.stalls += 1


class Bench:
    """A session whose surroundings the test controls."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.host = FakeHost()
        self.session = Session(ANNOUNCEMENT, self.host, self.clock)

    def open(self, **registered: Any) -> list[dict[str, Any]]:
        """Open a connection and return its first frames."""
        self.session.opened()
        first = self.sent()
        self.receive({**REGISTERED, **registered})
        return first

    def receive(self, message: dict[str, Any]) -> None:
        self.session.received(json.dumps(message))

    def sent(self) -> list[dict[str, Any]]:
        """Take the frames that the session has queued."""
        frames = []
        while (frame := self.session.take()) is not None:
            frames.append(json.loads(frame))
        return frames

    def call(self, function_id: str = "a::b", **fields: Any) -> Answer:
        """Start a call and return the record of its outcome."""
        answer = Answer()
        timeout_ms = fields.pop("timeout_ms", 5_000)
        call = Call(
            function_id=function_id,
            timeout_ms=timeout_ms,
            deadline=self.clock.now + timeout_ms,
            invocation_id=fields.pop("invocation_id", "c1"),
            settle=answer.settle,
            progress=answer.progress.append,
            **fields,
        )
        answer.call = call
        self.session.start_call(call)
        return answer


class Answer:
    """The outcome of a call."""

    call: Call

    def __init__(self) -> None:
        self.ends: list[tuple[Any, Any]] = []
        self.progress: list[Any] = []

    def settle(self, result: Any, error: Any) -> None:
        self.ends.append((result, error))

    @property
    def code(self) -> str | None:
        """The code it failed with; None if it has not ended or succeeded."""
        error = self.ends[0][1] if self.ends else None
        return error["code"] if error else None


def function(id_: str, handler: Callable[..., Any] = lambda payload: payload) -> Function:
    """Return a function to register."""
    call, is_async = bind(handler, id_)
    return Function(id_, call, is_async, None, None, None, None, None)


def trigger(id_: str = "t1", type_: str = "http") -> Trigger:
    """Return a trigger to register."""
    return Trigger(id_, type_, "a::b", '{"x":1}', None, None, None)


def trigger_type(
    id_: str = "watch",
    start: Callable[[Any], Any] = lambda _: None,
    stop: Callable[[Any], Any] = lambda _: None,
) -> TriggerType:
    """Return a trigger type to register."""
    return TriggerType(id_, "Watches", start, stop, None, None, None)


class FakeEngine:
    """An engine in memory for one worker, to which it routes its calls back; thread-safe."""

    def __init__(self, capabilities: list[str] | None = None, batch: bool = False) -> None:
        self.frames: list[dict[str, Any]] = []
        self.telemetry: list[tuple[str, dict[str, Any]]] = []
        """Signal and JSON of binary frames."""
        self.dials = 0
        self.refuse: str | None = None
        """While set, dialling fails with this reason."""
        self.denies = False
        """While set, connections open and are refused by access rules."""
        self.batch = batch
        self._capabilities = capabilities or ["cancel", "timeout", "progress"]
        self._changed = threading.Condition()
        self._transport: FakeTransport | None = None
        self._functions: set[str] = set()

    async def dial(self) -> Transport:
        with self._changed:
            self.dials += 1
            self._changed.notify_all()
        if self.refuse is not None:
            raise ConnectionLost(self.refuse)
        self._transport = FakeTransport(self)
        if self.denies:
            self.send({"type": "error", "error": {"code": "AUTH_ERROR", "message": "no key"}})
            self.drop()
            return self._transport
        self.send({**REGISTERED, "capabilities": self._capabilities})
        return self._transport

    def send(self, message: dict[str, Any] | str) -> None:
        """Send to the worker."""
        assert self._transport is not None
        self._transport.deliver(message if isinstance(message, str) else json.dumps(message))

    def drop(self) -> None:
        """Close the connection from this side."""
        assert self._transport is not None
        self._transport.deliver(None)

    def take(self, message: dict[str, Any]) -> None:
        """Handle one message of the worker."""
        self._route(message)
        with self._changed:
            self.frames.append(message)
            self._changed.notify_all()

    def take_binary(self, frame: bytes) -> None:
        """Handle telemetry of the worker."""
        with self._changed:
            self.telemetry.append((frame[:4].decode(), json.loads(frame[4:])))
            self._changed.notify_all()

    def wait_telemetry(self, signal: str) -> dict[str, Any]:
        """Wait for the first frame of a kind."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: next((body for kind, body in self.telemetry if kind == signal), None),
                LIMIT_S,
            )
        assert found is not None, f"never came; came: {self.telemetry}"
        return found

    def wait(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a frame of the worker, one that has arrived already included."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: next((frame for frame in self.frames if holds(frame)), None), LIMIT_S
            )
        assert found is not None, f"never came; came: {self.frames}"
        return found

    def wait_dials(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.dials >= count, LIMIT_S)

    def of_type(self, type_: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["type"] == type_]

    def _route(self, message: dict[str, Any]) -> None:
        kind, id_ = message["type"], message.get("invocation_id")
        if kind == "registerfunction":
            self._functions.add(message["id"])
        elif kind == "invokefunction":
            self._call(message)
        elif kind == "cancelinvocation":
            self.send({**message, "invocation_id": f"e-{id_}"})
        elif kind in ("invocationresult", "invocationprogress") and str(id_)[:2] == "e-":
            self.send({**message, "invocation_id": str(id_)[2:]})

    def _call(self, message: dict[str, Any]) -> None:
        id_, function_id = message.get("invocation_id"), message["function_id"]
        if function_id in self._functions:
            forwarded = {k: v for k, v in message.items() if k != "action"}
            self.send({**forwarded, "invocation_id": f"e-{id_}" if id_ else "void"})
        elif id_ is not None and function_id != "silent":
            error = {"code": "function_not_found", "message": f"Function {function_id} not found"}
            answer = {"type": "invocationresult", "invocation_id": id_, "function_id": function_id}
            self.send({**answer, "error": error})


class FakeTransport:
    """The worker's end of a connection to a FakeEngine."""

    is_full = False

    def __init__(self, engine: FakeEngine) -> None:
        self.batch = engine.batch
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._early: list[str] = []
        self._received: Callable[[list[str]], None] | None = None
        self._over = asyncio.Event()

    def deliver(self, text: str | None) -> None:
        self._loop.call_soon_threadsafe(self._arrive, text)

    def listen(self, received: Callable[[list[str]], None], writable: Callable[[], None]) -> None:
        self._received = received
        if self._early:
            received(self._early)

    def write(self, frames: Sequence[str | bytes]) -> None:
        if self._over.is_set():
            raise ConnectionLost("closed")
        for frame in frames:
            if isinstance(frame, bytes):
                self._engine.take_binary(frame)
                continue
            for part in frame.split("\n") if self.batch else [frame]:
                self._engine.take(json.loads(part))

    async def drain(self) -> None:
        if self._over.is_set():
            raise ConnectionLost("closed")

    async def ended(self) -> str:
        await self._over.wait()
        return "1001 going away"

    async def close(self) -> None:
        self._over.set()

    def _arrive(self, text: str | None) -> None:
        if self._over.is_set():
            return
        if text is None:
            self._over.set()
        elif self._received is None:
            self._early.append(text)
        else:
            self._received([text])
