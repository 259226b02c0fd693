"""
Routes calls between workers, fakes and built-in functions in the process of a test.

It follows PROTOCOL 1 to 4 as far as workers notice. Nothing is bounded; every part is guarded by
one lock, and functions of the engine run in threads of their own.
"""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from ._errors import EngineError, ErrorBody, describe_raised
from ._transport import ConnectionLost, Transport

LIMIT_S: Final = 20.0
"""Real time that a test waits for a call at most."""

Outcome = Callable[[Any, "ErrorBody | None"], None]
Function = Callable[[Any, Any], Any]


@dataclass
class SeenCall:
    """A call that came to a function; ``caller`` is ``test`` for calls and firings of the test."""

    function_id: str
    payload: Any
    metadata: Any
    caller: str
    result: Any = None
    error: ErrorBody | None = None


@dataclass
class TriggerType:
    """A built-in trigger type; `added` raises for a config that it does not accept."""

    added: Callable[[dict[str, Any]], None] = lambda _trigger: None
    removed: Callable[[str], None] = lambda _id: None


@dataclass
class Timer:
    """Something that is due."""

    due_ms: float
    run: Callable[[], None]


@dataclass(eq=False)
class Peer:
    """A connected worker: its end of the connection, and what it registered."""

    engine: Routing
    loop: asyncio.AbstractEventLoop
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    name: str = "worker"
    functions: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    triggers: dict[str, dict[str, Any]] = field(default_factory=dict)
    types: set[str] = field(default_factory=set)
    batch: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)
    early: list[str] = field(default_factory=list)
    received: Callable[[list[str]], None] | None = None

    @property
    def is_full(self) -> bool:
        """Never."""
        return False

    def send(self, message: dict[str, Any]) -> None:
        """Send to the worker; in any thread."""
        text = json.dumps(message)
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._arrive, text)

    def drop(self) -> None:
        """Lose the connection; in any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.over.set)

    def listen(self, received: Callable[[list[str]], None], writable: Callable[[], None]) -> None:
        """Deliver frames, those that came before included."""
        self.received = received
        if self.early:
            received(self.early)

    def write(self, frames: Sequence[str | bytes]) -> None:
        """Handle frames of the worker."""
        if self.over.is_set():
            raise ConnectionLost("the test engine has stopped")
        for frame in frames:
            if isinstance(frame, str):
                self.engine.received(self, json.loads(frame))

    async def drain(self) -> None:
        """Nothing is ever full."""

    async def ended(self) -> str:
        """Wait for the end."""
        await self.over.wait()
        self.engine.left(self)
        return "the test engine has stopped"

    async def close(self) -> None:
        """End it."""
        self.over.set()
        self.engine.left(self)

    def _arrive(self, text: str) -> None:
        if self.over.is_set():
            return
        if self.received is None:
            self.early.append(text)
        else:
            self.received([text])


class Routing:
    """See the module."""

    def __init__(self, start_ms: float) -> None:
        self.lock = threading.RLock()
        self.seen: list[SeenCall] = []
        self.fakes: dict[tuple[str, str], Function] = {}
        self.builtins: dict[str, Function] = {}
        self.types: dict[str, TriggerType] = {}
        self.function_added: Callable[[], None] = lambda: None
        self.peers: list[Peer] = []
        self.open: list[SeenCall] = []
        self.activity = 0
        self.now_ms = 0.0
        self._start_ms = start_ms
        self._timers: list[Timer] = []
        self._refused: set[str] = set()
        self._running: dict[str, tuple[Peer, Outcome, Callable[[Any], None]]] = {}
        self._cancels: dict[tuple[str, Any], Callable[[str], None]] = {}
        self._pool = ThreadPoolExecutor(32, "engine-sdk-test")

    # Time.

    def wall_ms(self) -> float:
        """Milliseconds since 1970."""
        return self._start_ms + self.now_ms

    def after(self, ms: float, run: Callable[[], None]) -> Callable[[], None]:
        """Run something when so much time has passed; the result cancels it."""
        timer = Timer(self.now_ms + max(0.0, ms), run)
        with self.lock:
            self._timers.append(timer)
        return lambda: self._timers.remove(timer) if timer in self._timers else None

    def step(self, until_ms: float) -> bool:
        """Let time pass up to the next timer and run it; False if none is due."""
        with self.lock:
            due = [timer for timer in self._timers if timer.due_ms <= until_ms]
            if not due:
                self.now_ms = max(self.now_ms, until_ms)
                return False
            timer = min(due, key=lambda each: each.due_ms)
            self._timers.remove(timer)
            self.now_ms = max(self.now_ms, timer.due_ms)
            timer.run()
        return True

    # Calls.

    def call(self, call: dict[str, Any], caller: str = "test") -> Future[Any]:
        """Make a call; the future has its result, or an EngineError."""
        future: Future[Any] = Future()

        def end(result: Any, error: ErrorBody | None) -> None:
            if error is None:
                future.set_result(result)
                return
            details, retryable = error.get("details"), error.get("retryable", False)
            raised = EngineError(error["code"], error["message"], details, retryable=retryable)
            future.set_exception(raised)

        self._start(call, caller, end)
        return future

    def fire(self, trigger: dict[str, Any], payload: Any) -> None:
        """Call the function of a trigger, unless its condition says false."""
        condition = (trigger.get("config") or {}).get("condition_function_id")
        call = {**_target(trigger), "metadata": trigger.get("metadata"), "payload": payload}
        if not isinstance(condition, str):
            self._start(call, "test", _ignore)
            return

        def decided(result: Any, error: ErrorBody | None) -> None:
            if error is None and result is not False:
                self._start(call, "test", _ignore)

        condition_call = {**_target(trigger), "function_id": condition, "payload": payload}
        self._start(condition_call, "test", decided)

    def triggers_of(self, type_: str) -> list[dict[str, Any]]:
        """Return the triggers of a type, in the order of their registration."""
        with self.lock:
            return [
                trigger
                for peer in self.peers
                for trigger in peer.triggers.values()
                if trigger["trigger_type"] == type_ and trigger["id"] not in self._refused
            ]

    def has(self, function_id: str, namespace: str | None) -> bool:
        """Tell whether a function is there."""
        key = key_of(namespace, function_id)
        is_own = key in self.fakes or function_id in self.builtins
        return is_own or any(key in peer.functions for peer in self.peers)

    def stop(self) -> None:
        """End all calls."""
        with self.lock:
            for _, end, _ in list(self._running.values()):
                end(None, _error("invocation_stopped", "The test engine has stopped"))
            self._running.clear()
        self._pool.shutdown(wait=False)

    # Events of peers.

    async def dial(self) -> Transport:
        """Connect a worker."""
        peer = Peer(self, asyncio.get_running_loop())
        with self.lock:
            self.peers.append(peer)
        peer.send(
            {
                "type": "workerregistered",
                "worker_id": peer.id,
                "reattach_token": str(uuid.uuid4()),
                "capabilities": ["cancel", "timeout", "progress"],
            }
        )
        return peer

    def left(self, peer: Peer) -> None:
        """Clean up after a worker."""
        with self.lock:
            if peer not in self.peers:
                return
            self.peers.remove(peer)
            for trigger in peer.triggers.values():
                self._remove_trigger(trigger)
            for id_, (callee, end, _) in list(self._running.items()):
                if callee is peer:
                    del self._running[id_]
                    end(None, _error("invocation_stopped", "Invocation stopped"))

    def received(self, peer: Peer, message: dict[str, Any]) -> None:
        """Handle one message of a worker."""
        with self.lock:
            self.activity += 1
            handle = getattr(self, f"_on_{message['type']}", None)
            if handle is not None:
                handle(peer, message)

    def _on_registerfunction(self, peer: Peer, message: dict[str, Any]) -> None:
        peer.functions[key_of(message.get("namespace"), message["id"])] = message
        self.function_added()

    def _on_unregisterfunction(self, peer: Peer, message: dict[str, Any]) -> None:
        peer.functions.pop(key_of(message.get("namespace"), message["id"]), None)

    def _on_registertrigger(self, peer: Peer, message: dict[str, Any]) -> None:
        own = self.types.get(message["trigger_type"], TriggerType())
        self._refused.discard(message["id"])
        peer.triggers[message["id"]] = message
        try:
            own.added(message)
        except Exception as error:
            self._refuse(message["id"], _error("trigger_registration_failed", str(error)))
            return
        for provider in self._providers(message["trigger_type"]):
            provider.send(message)

    def _on_unregistertrigger(self, peer: Peer, message: dict[str, Any]) -> None:
        if (trigger := peer.triggers.pop(message["id"], None)) is not None:
            self._remove_trigger(trigger)

    def _on_registertriggertype(self, peer: Peer, message: dict[str, Any]) -> None:
        peer.types.add(message["id"])
        for trigger in self.triggers_of(message["id"]):
            peer.send(trigger)

    def _on_unregistertriggertype(self, peer: Peer, message: dict[str, Any]) -> None:
        peer.types.discard(message["id"])

    def _on_triggerregistrationresult(self, _peer: Peer, message: dict[str, Any]) -> None:
        if message.get("error"):
            self._refuse(message["id"], message["error"])

    def _on_invocationresult(self, _peer: Peer, message: dict[str, Any]) -> None:
        running = self._running.pop(message["invocation_id"], None)
        if running is not None:
            running[1](message.get("result"), message.get("error"))

    def _on_invocationprogress(self, _peer: Peer, message: dict[str, Any]) -> None:
        if (running := self._running.get(message["invocation_id"])) is not None:
            running[2](message["data"])

    def _on_cancelinvocation(self, peer: Peer, message: dict[str, Any]) -> None:
        if (cancel := self._cancels.get((peer.id, message["invocation_id"]))) is not None:
            cancel(message.get("reason", ""))

    def _on_invokefunction(self, peer: Peer, message: dict[str, Any]) -> None:
        function_id, id_ = message["function_id"], message.get("invocation_id")
        action = message.get("action") or {}

        def answer(result: Any, error: ErrorBody | None) -> None:
            self._cancels.pop((peer.id, id_), None)
            if id_ is None or action.get("type") == "void":
                return
            head = {"type": "invocationresult", "invocation_id": id_, "function_id": function_id}
            outcome = {"error": error} if error else {} if result is None else {"result": result}
            peer.send({**head, **outcome})

        if function_id == "engine::workers::register":
            peer.name = str(message["data"]["name"])
            return answer({"success": True}, None)
        if function_id.startswith("engine::log::"):
            return answer(None, None)
        payload = message.get("data")
        if action.get("type") == "enqueue":
            job = {**action, "function_id": function_id, "data": payload}
            job["namespace"] = message.get("namespace")
            return _run(lambda: self.builtins["engine::queue::enqueue"](job, None), answer)
        progress = {"type": "invocationprogress", "invocation_id": id_}
        cancel = self._start(
            {**message, "payload": payload},
            peer.name,
            answer,
            lambda data: peer.send({**progress, "data": data}),
        )
        if id_ is not None:
            self._cancels[peer.id, id_] = cancel
        return None

    def _start(
        self,
        call: dict[str, Any],
        caller: str,
        outcome: Outcome,
        progress: Callable[[Any], None] = lambda _data: None,
    ) -> Callable[[str], None]:
        """Start a call; the result cancels it."""
        function_id, timeout_ms = call["function_id"], call.get("timeout_ms")
        record = SeenCall(function_id, json_copy(call["payload"]), call.get("metadata"), caller)
        timers: list[Callable[[], None]] = []

        def end(result: Any, error: ErrorBody | None) -> None:
            with self.lock:
                if not any(each is record for each in self.open):
                    return
                self.open = [each for each in self.open if each is not record]
                self.activity += 1
                for cancel in timers:
                    cancel()
                record.result, record.error = (None, error) if error else (result, None)
            outcome(record.result, error)

        with self.lock:
            self.seen.append(record)
            self.open.append(record)
            stop = self._dispatch(call, record, end, progress)

        def cancel_with(error: ErrorBody, reason: str) -> None:
            end(None, error)
            stop(reason)

        if timeout_ms is not None:
            text = f"Invocation of {function_id} timed out after {timeout_ms:g} ms"
            late = _error("timeout", text)
            timers.append(self.after(timeout_ms, lambda: cancel_with(late, "timeout")))
        return lambda reason: cancel_with(_error("cancelled", "Invocation cancelled"), reason)

    def _dispatch(
        self,
        call: dict[str, Any],
        record: SeenCall,
        end: Outcome,
        progress: Callable[[Any], None],
    ) -> Callable[[str], None]:
        """Run a function; the result tells its worker that the caller is gone."""
        function_id, namespace = call["function_id"], call.get("namespace")
        key = key_of(namespace, function_id)
        own = self.fakes.get(key) or self.builtins.get(function_id)
        replicas = [peer for peer in self.peers if key in peer.functions]
        if own is not None:
            payload = json_copy(record.payload)
            self._pool.submit(_run, lambda: own(payload, record.metadata), end)
        elif not replicas:
            self._pool.submit(end, None, not_found(function_id))
        if own is not None or not replicas:
            return lambda _reason: None
        callee, id_ = replicas[len(self.seen) % len(replicas)], str(uuid.uuid4())
        self._running[id_] = (callee, end, progress)
        options = {"namespace": namespace, "timeout_ms": call.get("timeout_ms")}
        options["metadata"] = record.metadata
        given = {name: value for name, value in options.items() if value is not None}
        head = {"type": "invokefunction", "invocation_id": id_, "function_id": function_id}
        callee.send({**head, **given, "data": record.payload})

        def stop(reason: str) -> None:
            if self._running.pop(id_, None) is not None:
                frame = {"type": "cancelinvocation", "invocation_id": id_, "reason": reason}
                callee.send(frame)

        return stop

    def _refuse(self, id_: str, error: ErrorBody) -> None:
        for peer in self.peers:
            if (trigger := peer.triggers.get(id_)) is not None:
                self._refused.add(id_)
                head = {key: trigger[key] for key in ("id", "trigger_type", "function_id")}
                peer.send({"type": "triggerregistrationresult", **head, "error": error})

    def _remove_trigger(self, trigger: dict[str, Any]) -> None:
        id_, type_ = trigger["id"], trigger["trigger_type"]
        self.types.get(type_, TriggerType()).removed(id_)
        for provider in self._providers(type_):
            provider.send({"type": "unregistertrigger", "id": id_, "trigger_type": type_})

    def _providers(self, type_: str) -> list[Peer]:
        return [peer for peer in self.peers if type_ in peer.types]


def _run(function: Callable[[], Any], end: Outcome) -> None:
    try:
        result = json_copy(function())
    except BaseException as raised:
        end(None, describe_raised(raised))
    else:
        end(result, None)


def _target(trigger: dict[str, Any]) -> dict[str, Any]:
    return {"function_id": trigger["function_id"], "namespace": trigger.get("namespace")}


def _ignore(_result: Any, _error: ErrorBody | None) -> None:
    """Receive the outcome of a firing."""


def _error(code: str, message: str) -> ErrorBody:
    return {"code": code, "message": message}


def not_found(function_id: str) -> ErrorBody:
    """Return the error of a function that is not there."""
    hint = f'to fake it: engine.fake("{function_id}", ...)'
    message = f"Function {function_id} not found"
    return {"code": "function_not_found", "message": message, "details": {"hint": hint}}


def key_of(namespace: str | None, function_id: str) -> tuple[str, str]:
    """Return the key of a function."""
    return (namespace or "default", function_id)


def json_copy(value: Any) -> Any:
    """Return a value as it arrives over the wire."""
    return json.loads(json.dumps(value))
