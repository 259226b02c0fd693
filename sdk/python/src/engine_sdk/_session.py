"""
A worker's side of the protocol, without sockets, threads or clocks.

Events of the connection and requests of the program come in as method calls; frames wait in the
outbox until `take` fetches them, everything else goes to the `Host`. Nothing here blocks.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from ._calls import Call, PendingCalls, outcome
from ._codec import (
    Invocation,
    TriggerInstance,
    check_size,
    decode,
    encode_error,
    frame,
    quote,
    read_head,
    read_invocation,
    read_trigger,
    result_frame,
    trigger_result_frame,
)
from ._errors import EngineError, ErrorBody, normalise_error
from ._registrations import Function, Trigger, TriggerType, quote_if

QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of calls that wait to be sent, and of other frames beyond which the engine must read."""

RESULT_BYTES_MAX: Final = 8 * QUEUED_BYTES_MAX
"""Bytes of unsent frames beyond which results are refused, though the engine reads."""

STALLED_MS: Final = 30_000
"""An engine that takes no frame for so long, while many bytes wait, does not read."""

QUEUED_CALLS_MAX: Final = 10_000
"""Calls that wait for a connection."""

UNSENT_BYTES_END: Final = 3 * QUEUED_BYTES_MAX
"""Bytes of unsent frames at which the connection to an engine that does not read is closed."""

ACCESS_KEY: Final = '"access_key"'
"""In every reference to a channel, so that frames without it need not be searched."""

log = logging.getLogger("engine_sdk")
DEFAULT_NAMESPACE = "default"
UNREACHABLE: ErrorBody = {
    "code": "engine_unreachable",
    "message": "There is no connection to the engine; try again later",
    "retryable": True,
}
CALLS_WAIT: ErrorBody = {
    "code": "overloaded",
    "message": "Too many calls wait for the connection to the engine; call again later",
    "retryable": True,
}
CANCELLED: ErrorBody = {"code": "cancelled", "message": "Invocation cancelled"}
SHUTDOWN: ErrorBody = {"code": "SHUTDOWN", "message": "engine client is shutting down"}
NO_FUNCTION: ErrorBody = {"code": "function_not_found", "message": "Function not found"}
NO_TYPE: ErrorBody = {"code": "trigger_type_not_found", "message": "Trigger type not found"}


class Host(Protocol):
    """What a session needs from its surroundings; no method blocks."""

    def output_ready(self) -> None:
        """Schedule `Session.take`: it has frames."""

    def deadline_set(self, at: float) -> None:
        """Schedule `Session.expire` at this time, unless it is scheduled earlier."""

    def run_function(self, invocation: Invocation, function: Function) -> None:
        """Run a function, then call `Session.finish`."""

    def abort(self, invocation: Invocation, reason: str | None) -> None:
        """Cancel a running invocation."""

    def start_trigger(
        self, trigger: TriggerInstance, trigger_type: TriggerType, connection: int
    ) -> None:
        """Start a trigger, then call `Session.answer_trigger`."""

    def stop_trigger(self, trigger_id: str) -> None:
        """Stop a trigger, if it was started."""

    def stop_triggers(self, trigger_type: TriggerType) -> None:
        """Stop all triggers of a type."""

    def connection_lost(self) -> None:
        """Cancel invocations and stop triggers: the engine sends them again after a reconnect."""

    def refused(self, reason: str) -> None:
        """End: the engine refuses this worker."""

    def stalled(self) -> None:
        """Close the connection: the engine does not read."""


class Session:
    """One worker's functions, triggers and calls, across all of its connections."""

    def __init__(self, announcement: str, host: Host, now: Callable[[], float]) -> None:
        self._announcement = announcement
        self._host = host
        self._now = now
        self._functions: dict[tuple[str, str], Function] = {}
        self._types: dict[tuple[str, str], TriggerType] = {}
        self._triggers: dict[str, Trigger] = {}
        self._running: dict[str, Invocation] = {}
        self._pending = PendingCalls()
        self._outbox = Outbox()
        self._open = False
        self._waits = True
        """Whether calls wait for a connection."""
        self._connection = 0
        self._previous: tuple[str, str] | None = None
        self.refusals = 0
        """Connections in a row that the engine's access rules refused."""
        self.revive: Callable[[Any], Any] | None = None
        """Turns references in what the program gets into ends of channels."""
        self._capabilities: frozenset[str] = frozenset()
        self._handle: dict[str, Callable[[dict[str, Any]], None]] = {
            "workerregistered": self._on_registered,
            "invokefunction": self._on_invoke,
            "invocationresult": self._on_result,
            "invocationprogress": self._on_progress,
            "cancelinvocation": self._on_cancel,
            "registertrigger": self._on_register_trigger,
            "unregistertrigger": self._on_unregister_trigger,
            "triggerregistrationresult": self._on_trigger_result,
            "registrationrejected": self._on_rejected,
            "error": self._on_error,
        }

    # The connection.

    def opened(self) -> None:
        """Queue the first frames of a new connection (PROTOCOL 1.3) before the queued calls."""
        self._open = True
        self._connection += 1
        first = [self._announcement]
        if self._previous is not None:
            worker_id, token = map(quote, self._previous)
            first.insert(0, frame("reattach", previous_worker_id=worker_id, reattach_token=token))
        first += [trigger_type.encode() for trigger_type in self._types.values()]
        first += [function.encode() for function in self._functions.values()]
        for trigger in self._triggers.values():
            trigger.sent = True
            first.append(trigger.encode())
        self._outbox.begin_connection(first, self._now())
        self._host.output_ready()

    @property
    def worker_id(self) -> str | None:
        """Its id on the current or last connection; None before the engine has sent one."""
        return None if self._previous is None else self._previous[0]

    def closed(self, reason: str) -> None:
        """Discard the state of the connection, and end the calls sent on it with the reason."""
        if not self._open:
            return
        self._open = False
        self._capabilities = frozenset()
        self._running.clear()
        self._outbox.end_connection()
        self._pending.end_sent(
            {
                "code": "invocation_stopped",
                "message": "Invocation stopped",
                "details": {"reason": reason},
            }
        )
        self._host.connection_lost()

    def received(self, text: str) -> None:
        """Handle one message; no message ends the session."""
        if not text or text.isspace():
            return
        try:
            message = decode(text)
        except ValueError as error:
            log.warning("[engine] Ignored a message that cannot be read: %s", error)
            self._answer_unread(text, str(error))
            return
        if self.revive is not None and ACCESS_KEY in text:
            for key in ("data", "result"):
                if key in message:
                    message[key] = self.revive(message[key])
        handle = self._handle.get(message["type"])
        if handle is None:
            return  # Of a newer engine; also ping and pong (PROTOCOL 1.7).
        try:
            handle(message)
        except ValueError as error:
            log.warning("[engine] Ignored a malformed %s: %s", message["type"], error)
        except Exception as error:
            log.exception("[engine] Could not handle a message of type %s", message["type"])
            self._answer_unread(text, f"{type(error).__name__}: {error}")

    def take(self) -> str | None:
        """Take the next frame to write; None without frames or connection."""
        return self._outbox.take(self._now()) if self._open else None

    def expire(self) -> None:
        """End the calls whose deadlines have passed."""
        for call in self._pending.expire(self._now(), "timeout" in self._capabilities):
            self._send_cancel(call, "timeout")
        if (due := self._pending.next_deadline) is not None:
            self._host.deadline_set(due)

    def end_calls(self, error: ErrorBody) -> None:
        """End every call; other queued frames can still be taken."""
        self._pending.end_all(error)

    def refuse_waiting(self) -> None:
        """End the calls that wait for a connection; from now on calls without one fail."""
        self._waits = False
        self._pending.end_all(UNREACHABLE)

    # Registrations.

    def add_function(self, function: Function) -> None:
        """Register a function; it replaces one with the same id."""
        self._functions[_key(function.namespace, function.id)] = function
        self._send(function.encode())

    def remove_function(self, function: Function) -> None:
        """Unregister a function, unless it was replaced."""
        key = _key(function.namespace, function.id)
        if self._functions.get(key) is function:
            del self._functions[key]
            self._send(function.encode_unregister())

    def add_type(self, trigger_type: TriggerType) -> None:
        """Register a trigger type; it replaces one with the same id."""
        self._types[_key(trigger_type.namespace, trigger_type.id)] = trigger_type
        self._send(trigger_type.encode())

    def remove_type(self, trigger_type: TriggerType) -> None:
        """Unregister a trigger type, unless it was replaced."""
        key = _key(trigger_type.namespace, trigger_type.id)
        if self._types.get(key) is trigger_type:
            del self._types[key]
            self._host.stop_triggers(trigger_type)
            self._send(trigger_type.encode_unregister())

    def add_trigger(self, trigger: Trigger) -> None:
        """Register a trigger."""
        self._triggers[trigger.id] = trigger
        trigger.sent = self._open
        self._send(trigger.encode())

    def remove_trigger(self, trigger: Trigger) -> None:
        """Unregister a trigger, after the reconnect if not connected."""
        if self._triggers.pop(trigger.id, None) is not None and trigger.sent:
            self._outbox.add_persistent(trigger.encode_unregister())
            self._host.output_ready()

    # Calls.

    def start_call(self, call: Call) -> None:
        """Queue a call; without a connection it waits for one."""
        if call.done:
            return  # Cancelled before: the invocation of the handler that makes it was.
        if not self._open and not self._waits:
            self._refuse_call(call, UNREACHABLE)
            return
        if not self._outbox.add_call(call, self._now(), self._open):
            self._refuse_call(call, CALLS_WAIT)
            return
        if call.invocation_id is not None:
            self._pending.add(call)
            self._host.deadline_set(call.deadline)
        self._host.output_ready()

    @property
    def is_quiet(self) -> bool:
        """Whether it is connected, with no call under way and nothing to write."""
        return self._open and not len(self._pending) and not len(self._outbox)

    def adopt_call(self, call: Call) -> None:
        """Wait for the end of a call that was written on this connection without `start_call`."""
        call.sent = True
        if not call.done:
            self._pending.add(call)
            self._host.deadline_set(call.deadline)

    def _refuse_call(self, call: Call, error: ErrorBody) -> None:
        if call.settle is None:
            log.warning("[engine] Dropped a call of %s: %s", call.function_id, error["message"])
        call.end(None, error)

    def cancel_call(self, call: Call, reason: str | None = None) -> None:
        """Cancel a call; the engine gets a cancel if the call was sent."""
        if call.done:
            return
        self._pending.end(call, None, CANCELLED)
        self._send_cancel(call, reason)

    # Invocations.

    def finish(self, invocation: Invocation, result: str | None, error: str | None) -> None:
        """Answer an invocation with an encoded result or error; neither: nothing returned."""
        if self._is_running(invocation):  # Else its connection is closed, or it was void.
            self._running.pop(invocation.invocation_id or "")
            self._send(self._answer_frame(invocation, result, error))
            is_stuck = self._outbox.is_stuck(self._now())
            if is_stuck and self._outbox.frame_chars > UNSENT_BYTES_END:
                self._host.stalled()

    def _answer_frame(self, invocation: Invocation, result: str | None, error: str | None) -> str:
        """Return the frame of an answer, or of the error that it cannot be sent."""
        what = f"Result of {invocation.function_id}"
        try:
            is_full = self._outbox.frame_chars > RESULT_BYTES_MAX
            if is_full or self._outbox.is_stuck(self._now()):
                why = "too many wait for the engine" if is_full else "the engine does not read"
                raise EngineError("overloaded", f"{what} is dropped: {why}")
            return check_size(result_frame(invocation, result, error), what)
        except EngineError as refusal:
            body: ErrorBody = {"code": refusal.code, "message": refusal.message}
            return result_frame(invocation, None, encode_error(body))

    def progress(self, invocation: Invocation, data: str) -> None:
        """Send progress, if the invocation still runs and the engine forwards progress."""
        if self._is_running(invocation) and "progress" in self._capabilities:
            invocation_id = quote(invocation.invocation_id or "")
            if self._outbox.frame_chars <= QUEUED_BYTES_MAX:
                self._send(frame("invocationprogress", invocation_id=invocation_id, data=data))

    def answer_trigger(
        self, trigger: TriggerInstance, error: ErrorBody | None, connection: int
    ) -> None:
        """Answer ``registertrigger``, unless the connection that it arrived on is closed."""
        if connection == self._connection:
            encoded = None if error is None else encode_error(error)
            self._send(trigger_result_frame(trigger, encoded))

    def _send_cancel(self, call: Call, reason: str | None) -> None:
        if call.sent and call.invocation_id is not None and "cancel" in self._capabilities:
            invocation_id, text = quote(call.invocation_id), quote_if(reason)
            self._send(frame("cancelinvocation", invocation_id=invocation_id, reason=text))

    def _is_running(self, invocation: Invocation) -> bool:
        return self._running.get(invocation.invocation_id or "") is invocation

    def _send(self, text: str) -> None:
        if self._open:
            self._outbox.add_frame(text, self._now())
            self._host.output_ready()

    # Messages of the engine.

    def _on_registered(self, message: dict[str, Any]) -> None:
        self.refusals = 0
        worker_id, token = message.get("worker_id"), message.get("reattach_token")
        if isinstance(worker_id, str) and isinstance(token, str):
            self._previous = (worker_id, token)
        capabilities = message.get("capabilities")
        if isinstance(capabilities, list):
            self._capabilities = frozenset(str(name) for name in capabilities)

    def _on_invoke(self, message: dict[str, Any]) -> None:
        invocation = read_invocation(message, self._connection, self._now())
        if (id_ := invocation.invocation_id) is not None:
            if id_ in self._running:
                raise ValueError(f"{id_} runs already")
            self._running[id_] = invocation
        function = self._functions.get(_key(message.get("namespace"), invocation.function_id))
        if function is None:
            self.finish(invocation, None, encode_error(NO_FUNCTION))
        else:
            self._host.run_function(invocation, function)

    def _on_result(self, message: dict[str, Any]) -> None:
        call = self._pending.get(message.get("invocation_id"))
        if call is None:
            return  # Late: the call has ended.
        self._pending.end(call, *outcome(message))

    def _on_progress(self, message: dict[str, Any]) -> None:
        call = self._pending.get(message.get("invocation_id"))
        if call is not None and call.progress is not None:
            call.progress(message.get("data"))

    def _on_cancel(self, message: dict[str, Any]) -> None:
        invocation = self._running.get(str(message.get("invocation_id")))
        if invocation is not None:
            reason = message.get("reason")
            self._host.abort(invocation, reason if isinstance(reason, str) else None)

    def _on_register_trigger(self, message: dict[str, Any]) -> None:
        trigger = read_trigger(message)
        trigger_type = self._types.get(_key(message.get("trigger_namespace"), trigger.trigger_type))
        if trigger_type is None:
            self.answer_trigger(trigger, NO_TYPE, self._connection)
        else:
            self._host.start_trigger(trigger, trigger_type, self._connection)

    def _on_unregister_trigger(self, message: dict[str, Any]) -> None:
        # Only the id is required (PROTOCOL 2.8).
        self._host.stop_trigger(str(message.get("id")))

    def _on_trigger_result(self, message: dict[str, Any]) -> None:
        if (error := message.get("error")) is not None:
            fields = (
                message.get("id"),
                message.get("trigger_type"),
                normalise_error(error)["message"],
            )
            log.error('[engine] Trigger registration failed for "%s" (%s): %s', *fields)

    def _on_rejected(self, message: dict[str, Any]) -> None:
        code, what = message.get("code"), message.get("function_id") or message.get("worker_name")
        reason = f"The engine refused {what}: {message.get('message') or code}"
        log.error("[engine] %s", reason)
        if code == "WORKER_NAMESPACE_CONFLICT":
            self._host.refused(reason)

    def _on_error(self, message: dict[str, Any]) -> None:
        body = normalise_error(message.get("error"))
        if body["code"] == "AUTH_ERROR":
            self.refusals += 1
        log.warning("[engine] The engine reports %s: %s", body["code"], body["message"])

    def _answer_unread(self, text: str, problem: str) -> None:
        """End the call or the invocation of a message that cannot be decoded."""
        error: ErrorBody = {"code": "bad_message", "message": problem}
        type_, invocation_id, function_id = read_head(text) or ("", "", None)
        if type_ == "invocationresult":
            if (call := self._pending.get(invocation_id)) is not None:
                self._pending.end(call, None, error)
        elif function_id is not None:
            message = {"invocation_id": invocation_id, "function_id": function_id}
            invocation = read_invocation(message, self._connection, self._now())
            self._send(result_frame(invocation, None, encode_error(error)))


class Outbox:
    """
    Frames and calls that wait to be written, oldest first.

    Frames belong to the current connection and are dropped with it. Calls stay queued while there
    is no connection, until their deadlines.
    """

    def __init__(self) -> None:
        self._items: deque[Call | str | _PersistentFrame] = deque()
        self._queued_bytes = 0
        self._queued_calls = 0
        self.frame_chars = 0
        """Characters of the frames that wait."""
        self._moved_at = 0.0
        """When a frame was last taken, or began to wait behind no other."""

    def __len__(self) -> int:
        return len(self._items)

    def is_stuck(self, now: float) -> bool:
        """Whether many bytes wait, and none were taken for long."""
        return self.frame_chars > QUEUED_BYTES_MAX and now - self._moved_at >= STALLED_MS

    def add_frame(self, frame: str, now: float) -> None:
        """Append a frame of the current connection."""
        if self.frame_chars == 0:
            self._moved_at = now
        self._items.append(frame)
        self.frame_chars += len(frame)

    def add_persistent(self, frame: str) -> None:
        """Append a frame that stays queued for the next connection."""
        self._items.append(_PersistentFrame(frame))

    def add_call(self, call: Call, now: float, is_open: bool) -> bool:
        """Append a call; false when the queue is full."""
        if not self._has_room(call, is_open):
            self._drop_over(now)
            if not self._has_room(call, is_open):
                return False
        self._queued_bytes += call.weight
        self._queued_calls += 1
        self._items.append(call)
        return True

    def _has_room(self, call: Call, is_open: bool) -> bool:
        # A program may make many calls at once on an open connection, which takes them soon.
        if not is_open and self._queued_calls >= QUEUED_CALLS_MAX:
            return False
        return not self._queued_bytes or self._queued_bytes + call.weight <= QUEUED_BYTES_MAX

    def take(self, now: float) -> str | None:
        """Remove the next frame; a call counts as sent from now on."""
        while self._items:
            item = self._items.popleft()
            if isinstance(item, str):
                self.frame_chars -= len(item)
                self._moved_at = now
                return item
            if isinstance(item, _PersistentFrame):
                return item.frame
            self._queued_bytes -= item.weight
            self._queued_calls -= 1
            if _is_over(item, now):
                continue
            item.sent = True
            return item.encode(now)
        return None

    def begin_connection(self, first: list[str], now: float) -> None:
        """Prepend the first frames of a new connection."""
        self.end_connection()
        self._moved_at = now
        self._items.extendleft(reversed(first))
        self.frame_chars = sum(map(len, first))

    def end_connection(self) -> None:
        """Drop the frames of the closed connection."""
        self._items = deque(item for item in self._items if not isinstance(item, str))
        self.frame_chars = 0

    def _drop_over(self, now: float) -> None:
        self._items = deque(
            item for item in self._items if not (isinstance(item, Call) and _is_over(item, now))
        )
        calls = [item for item in self._items if isinstance(item, Call)]
        self._queued_bytes, self._queued_calls = sum(call.weight for call in calls), len(calls)


class _PersistentFrame:
    def __init__(self, frame: str) -> None:
        self.frame = frame


def _is_over(call: Call, now: float) -> bool:
    return call.done or call.deadline <= now


def _key(namespace: object, id_: str) -> tuple[str, str]:
    return (namespace if isinstance(namespace, str) else DEFAULT_NAMESPACE, id_)
