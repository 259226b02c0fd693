"""What a session leaves to others, because it takes threads, sockets or time."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from ._calls import Call, Waiting
from ._codec import (
    Invocation,
    TriggerInstance,
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
from ._errors import ErrorBody, normalise_error
from ._registrations import Function, Trigger, TriggerType, quote_if

QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of calls that wait for the line."""


class Host(Protocol):
    """What a session needs done; every method returns at once."""

    def output_ready(self) -> None:
        """Call `take`: it has something to give."""

    def deadline_set(self, at: float) -> None:
        """Call `expire` at this time, perhaps earlier than thought."""

    def run_function(self, invocation: Invocation, function: Function) -> None:
        """Run a function, then `finish`."""

    def abort(self, invocation: Invocation, reason: str | None) -> None:
        """Tell a handler that nobody wants its result any more."""

    def provide(self, trigger: TriggerInstance, offer: TriggerType, line: int) -> None:
        """Start a trigger, then `answer_trigger`."""

    def withdraw(self, trigger_id: str) -> None:
        """End a trigger, if it was started."""

    def withdraw_all(self, offer: TriggerType) -> None:
        """End all triggers of a type."""

    def line_lost(self) -> None:
        """Tell handlers that nobody waits, and end all triggers: a new line brings them anew."""

    def refused(self, reason: str) -> None:
        """End: the engine does not want this worker at all."""


log = logging.getLogger("engine_sdk")
DEFAULT_NAMESPACE = "default"
STOPPED: ErrorBody = {"code": "invocation_stopped", "message": "Invocation stopped"}
CANCELLED: ErrorBody = {"code": "cancelled", "message": "Invocation cancelled"}
SHUTDOWN: ErrorBody = {"code": "SHUTDOWN", "message": "engine client is shutting down"}
NO_FUNCTION: ErrorBody = {"code": "function_not_found", "message": "Function not found"}
NO_TYPE: ErrorBody = {"code": "trigger_type_not_found", "message": "Trigger type not found"}


class Session:
    """One worker's functions, triggers and calls, over as many lines as it takes."""

    def __init__(self, announcement: str, host: Host, now: Callable[[], float]) -> None:
        self._announcement = announcement
        self._host = host
        self._now = now
        self._functions: dict[tuple[str, str], Function] = {}
        self._types: dict[tuple[str, str], TriggerType] = {}
        self._triggers: dict[str, Trigger] = {}
        self._running: dict[str, Invocation] = {}
        self._waiting = Waiting()
        self._outbox = Outbox()
        self._open = False
        self._line = 0
        self._previous: tuple[str, str] | None = None
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

    # The line.

    def opened(self) -> None:
        """Say on a new line who this is and what it offers, then what was kept."""
        self._open = True
        self._line += 1
        first = [self._announcement]
        if self._previous is not None:
            worker_id, token = map(quote, self._previous)
            first.insert(0, frame("reattach", previous_worker_id=worker_id, reattach_token=token))
        first += [offer.encode() for offer in self._types.values()]
        first += [offer.encode() for offer in self._functions.values()]
        for trigger in self._triggers.values():
            trigger.sent = True
            first.append(trigger.encode())
        self._outbox.begin_line(first)
        self._host.output_ready()

    @property
    def worker_id(self) -> str | None:
        """Its id on the present line or the last one; None before the engine has said it."""
        return None if self._previous is None else self._previous[0]

    def closed(self) -> None:
        """Give up the line, and with it whatever had been sent on it."""
        if not self._open:
            return
        self._open = False
        self._capabilities = frozenset()
        self._running.clear()
        self._outbox.end_line()
        self._waiting.end_sent(STOPPED)
        self._host.line_lost()

    def received(self, text: str) -> None:
        """Handle one message; whatever it is, the session goes on."""
        if not text or text.isspace():
            return
        try:
            message = decode(text)
        except ValueError as error:
            log.warning("[engine] Ignored a message that cannot be read: %s", error)
            self._answer_unread(text, {"code": "deserialization_error", "message": str(error)})
            return
        handle = self._handle.get(message["type"])
        if handle is None:
            return  # A newer engine may say more; also ping and pong (PROTOCOL 1.7).
        try:
            handle(message)
        except ValueError as error:
            log.warning("[engine] Ignored a malformed %s: %s", message["type"], error)
        except Exception:
            log.exception("[engine] Could not handle a message of type %s", message["type"])

    def take(self) -> str | None:
        """Take the next frame to write; None when there is no more or no line."""
        return self._outbox.take(self._now()) if self._open else None

    def expire(self) -> None:
        """End the calls whose time is over."""
        for call in self._waiting.expire(self._now(), "timeout" in self._capabilities):
            self._tell_cancelled(call, "timeout")
        if (due := self._waiting.next_deadline) is not None:
            self._host.deadline_set(due)

    def end_calls(self, error: ErrorBody) -> None:
        """End every call; whatever else was queued may still be taken."""
        self._waiting.end_all(error)

    # What this worker offers.

    def add_function(self, function: Function) -> None:
        """Offer a function, in place of one with the same id."""
        self._functions[_key(function.namespace, function.id)] = function
        self._send(function.encode())

    def remove_function(self, function: Function) -> None:
        """Take a function back, unless another one stands in its place."""
        key = _key(function.namespace, function.id)
        if self._functions.get(key) is function:
            del self._functions[key]
            self._send(function.encode_end())

    def add_type(self, offer: TriggerType) -> None:
        """Offer a trigger type, in place of one with the same id."""
        self._types[_key(offer.namespace, offer.id)] = offer
        self._send(offer.encode())

    def remove_type(self, offer: TriggerType) -> None:
        """Take a trigger type back, unless another one stands in its place."""
        key = _key(offer.namespace, offer.id)
        if self._types.get(key) is offer:
            del self._types[key]
            self._host.withdraw_all(offer)
            self._send(offer.encode_end())

    def add_trigger(self, trigger: Trigger) -> None:
        """Ask for a trigger."""
        self._triggers[trigger.id] = trigger
        trigger.sent = self._open
        self._send(trigger.encode())

    def remove_trigger(self, trigger: Trigger) -> None:
        """End a trigger; the next line is told if there is none now."""
        if self._triggers.pop(trigger.id, None) is not None and trigger.sent:
            self._outbox.add_kept(trigger.encode_end())
            self._host.output_ready()

    # Calls of this worker.

    def start_call(self, call: Call) -> None:
        """Make a call; without a line it waits for one."""
        if not self._outbox.add_call(call, self._now()):
            message = "Too much waits for the line to the engine; call again later"
            if call.settle is None:
                log.warning("[engine] Dropped a call of %s: %s", call.function_id, message)
            call.end(None, {"code": "overloaded", "message": message, "retryable": True})
            return
        if call.invocation_id is not None:
            self._waiting.add(call)
            self._host.deadline_set(call.deadline)
        self._host.output_ready()

    def cancel_call(self, call: Call, reason: str | None = None) -> None:
        """End a call that its caller no longer wants; the engine is told if it has it."""
        if call.done:
            return
        self._waiting.end(call, None, CANCELLED)
        self._tell_cancelled(call, reason)

    # Runs of functions of this worker.

    def finish(self, invocation: Invocation, result: str | None, error: str | None) -> None:
        """Answer an invocation; both texts are JSON, and neither means: nothing returned."""
        if self._is_running(invocation):  # Else its line is gone, or nobody waits.
            self._running.pop(invocation.invocation_id or "")
            self._send(result_frame(invocation, result, error))

    def progress(self, invocation: Invocation, data: str) -> None:
        """Send news of an invocation: none after its end, none that nobody can read."""
        if self._is_running(invocation) and "progress" in self._capabilities:
            invocation_id = quote(invocation.invocation_id or "")
            self._send(frame("invocationprogress", invocation_id=invocation_id, data=data))

    def answer_trigger(self, trigger: TriggerInstance, error: ErrorBody | None, line: int) -> None:
        """Tell the engine whether a trigger of this worker's type is live."""
        if line == self._line:
            told = None if error is None else encode_error(error)
            self._send(trigger_result_frame(trigger, told))

    def _tell_cancelled(self, call: Call, reason: str | None) -> None:
        if call.sent and call.invocation_id is not None and "cancel" in self._capabilities:
            invocation_id, told = quote(call.invocation_id), quote_if(reason)
            self._send(frame("cancelinvocation", invocation_id=invocation_id, reason=told))

    def _is_running(self, invocation: Invocation) -> bool:
        return self._running.get(invocation.invocation_id or "") is invocation

    def _send(self, text: str) -> None:
        if self._open:
            self._outbox.add_frame(text)
            self._host.output_ready()

    # Messages of the engine.

    def _on_registered(self, message: dict[str, Any]) -> None:
        worker_id, token = message.get("worker_id"), message.get("reattach_token")
        if isinstance(worker_id, str) and isinstance(token, str):
            self._previous = (worker_id, token)
        capabilities = message.get("capabilities")
        if isinstance(capabilities, list):
            self._capabilities = frozenset(str(name) for name in capabilities)

    def _on_invoke(self, message: dict[str, Any]) -> None:
        invocation = read_invocation(message, self._line, self._now())
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
        call = self._waiting.get(message.get("invocation_id"))
        if call is None:
            return  # Late: the caller was already told.
        error = message.get("error")
        body = None if error is None else normalise_error(error)
        self._waiting.end(call, message.get("result"), body)

    def _on_progress(self, message: dict[str, Any]) -> None:
        call = self._waiting.get(message.get("invocation_id"))
        if call is not None and call.progress is not None:
            call.progress(message.get("data"))

    def _on_cancel(self, message: dict[str, Any]) -> None:
        invocation = self._running.get(str(message.get("invocation_id")))
        if invocation is not None:
            reason = message.get("reason")
            self._host.abort(invocation, reason if isinstance(reason, str) else None)

    def _on_register_trigger(self, message: dict[str, Any]) -> None:
        trigger = read_trigger(message)
        offer = self._types.get(_key(message.get("trigger_namespace"), trigger.trigger_type))
        if offer is None:
            self.answer_trigger(trigger, NO_TYPE, self._line)
        else:
            self._host.provide(trigger, offer, self._line)

    def _on_unregister_trigger(self, message: dict[str, Any]) -> None:
        # Only the id is certain to be there (PROTOCOL 2.8).
        self._host.withdraw(str(message.get("id")))

    def _on_trigger_result(self, message: dict[str, Any]) -> None:
        if (error := message.get("error")) is not None:
            told = (
                message.get("id"),
                message.get("trigger_type"),
                normalise_error(error)["message"],
            )
            log.error('[engine] Trigger registration failed for "%s" (%s): %s', *told)

    def _on_rejected(self, message: dict[str, Any]) -> None:
        code, what = message.get("code"), message.get("function_id") or message.get("worker_name")
        reason = f"The engine refused {what}: {message.get('message') or code}"
        log.error("[engine] %s", reason)
        if code == "WORKER_NAMESPACE_CONFLICT":
            self._host.refused(reason)

    def _on_error(self, message: dict[str, Any]) -> None:
        body = normalise_error(message.get("error"))
        log.warning("[engine] The engine reports %s: %s", body["code"], body["message"])

    def _answer_unread(self, text: str, error: ErrorBody) -> None:
        """Leave nobody waiting for a message that was too much for the parser."""
        type_, invocation_id, function_id = read_head(text) or ("", "", None)
        if type_ == "invocationresult":
            if (call := self._waiting.get(invocation_id)) is not None:
                self._waiting.end(call, None, error)
        elif function_id is not None:
            message = {"invocation_id": invocation_id, "function_id": function_id}
            invocation = read_invocation(message, self._line, self._now())
            self._send(result_frame(invocation, None, encode_error(error)))


def _key(namespace: object, id_: str) -> tuple[str, str]:
    return (namespace if isinstance(namespace, str) else DEFAULT_NAMESPACE, id_)


class Outbox:
    """Frames and calls, oldest first."""

    def __init__(self) -> None:
        self._items: deque[Call | str | _Kept] = deque()
        self._queued_bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    def add_frame(self, frame: str) -> None:
        """Put a frame of the present line last."""
        self._items.append(frame)

    def add_kept(self, frame: str) -> None:
        """Put a frame last that also the next line is to carry."""
        self._items.append(_Kept(frame))

    def add_call(self, call: Call, now: float) -> bool:
        """Put a call last; false when too much waits already."""
        if self._queued_bytes and self._queued_bytes + call.weight > QUEUED_BYTES_MAX:
            self._drop_over(now)
            if self._queued_bytes + call.weight > QUEUED_BYTES_MAX:
                return False
        self._queued_bytes += call.weight
        self._items.append(call)
        return True

    def take(self, now: float) -> str | None:
        """Take the next frame; a call counts as sent from now on."""
        while self._items:
            item = self._items.popleft()
            if isinstance(item, str):
                return item
            if isinstance(item, _Kept):
                return item.frame
            self._queued_bytes -= item.weight
            if _is_over(item, now):
                continue
            item.sent = True
            return item.encode(now)
        return None

    def begin_line(self, first: list[str]) -> None:
        """Put the first frames of a new line before whatever was kept."""
        self.end_line()
        self._items.extendleft(reversed(first))

    def end_line(self) -> None:
        """Drop what belonged to a line that is gone."""
        self._items = deque(item for item in self._items if not isinstance(item, str))

    def _drop_over(self, now: float) -> None:
        self._items = deque(
            item for item in self._items if not (isinstance(item, Call) and _is_over(item, now))
        )
        self._queued_bytes = sum(item.weight for item in self._items if isinstance(item, Call))


class _Kept:
    def __init__(self, frame: str) -> None:
        self.frame = frame


def _is_over(call: Call, now: float) -> bool:
    return call.done or call.deadline <= now
