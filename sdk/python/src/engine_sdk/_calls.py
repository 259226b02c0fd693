"""
The calls that this worker makes: checked requests in, frames out, results or errors back.

`plan_call` checks a request and encodes it as a `Call`. `PendingCalls` holds the calls without an
answer, with one heap of deadlines. `ThreadWaiter` and `LoopWaiter` block the caller's thread or
suspend its coroutine until the call ends.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import queue
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ._codec import check_size, encode, encode_ids, encode_trace, quote
from ._context import CallContext
from ._errors import ErrorBody, InvocationError, invocation_error, normalise_error
from ._registrations import encode_if
from ._requests import (
    TriggerRequest,
    check_action,
    check_id,
    check_keys,
    check_namespace,
    check_timeout,
)
from ._threads import running_loop_mailbox

TIMEOUT_GRACE_MS: Final = 1_000
"""How long to wait after a deadline for the engine's own ``timeout`` error."""


LARGE_CHARS: Final = 8 * 1024 * 1024
"""Calls from this size on are checked against the largest message before they are sent."""

Settle = Callable[[Any, "ErrorBody | None"], None]
"""Receives the outcome of a call once: its result, or an error."""

_STUCK_MS = 5_000


@dataclass(eq=False, slots=True)
class Call:
    """One call of this worker; its strings are encoded JSON, its times milliseconds."""

    function_id: str
    timeout_ms: float
    deadline: float
    invocation_id: str | None = None
    """None: a void call, which gets no answer."""
    payload: str | None = None
    action: str | None = None
    metadata: str | None = None
    namespace: str | None = None
    traceparent: str | None = None
    baggage: str | None = None
    settle: Settle | None = None
    progress: Callable[[Any], None] | None = None
    sent: bool = False
    done: bool = False
    extended: bool = False

    @property
    def weight(self) -> int:
        """Approximate size of the queued call in bytes."""
        return 256 + len(self.payload or "") + len(self.metadata or "")

    def encode(self, now: float) -> str:
        """Encode its frame, with the remaining time as ``timeout_ms``."""
        head = ""
        if self.namespace is not None:
            head = f',"namespace":{quote(self.namespace)}'
        if self.action is not None:
            head += f',"action":{self.action}'
        if self.invocation_id is not None:
            # For void calls the engine uses its own default (PROTOCOL 3.3).
            head += f',"timeout_ms":{max(1, round(self.deadline - now))}'
        if self.metadata is not None:
            head += f',"metadata":{self.metadata}'
        head += encode_trace(self.traceparent, self.baggage)
        data = "" if self.payload is None else f',"data":{self.payload}'
        ids = encode_ids("invokefunction", self.invocation_id, self.function_id)
        return f"{ids}{head}{data}}}"

    def end(self, result: Any, error: ErrorBody | None) -> None:
        """Deliver the outcome to the caller, once."""
        if self.done:
            return
        self.done = True
        if self.settle is not None:
            self.settle(result, error)


def outcome(message: dict[str, Any]) -> tuple[Any, ErrorBody | None]:
    """
    Read the result and the error of an ``invocationresult``.

    Raises:
        ValueError: When the error is malformed.

    """
    error = message.get("error")
    return message.get("result"), None if error is None else normalise_error(error)


class PendingCalls:
    """The calls that have an id and no answer yet."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._due: list[tuple[float, int, Call]] = []
        self._added = 0

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def next_deadline(self) -> float | None:
        """The earliest time at which `expire` may have something to do."""
        while self._due and self._due[0][2].done:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def add(self, call: Call) -> None:
        """Add a call that expects an answer."""
        assert call.invocation_id is not None, "a call that waits has an id"
        self._calls[call.invocation_id] = call
        self._push(call.deadline, call)

    def get(self, invocation_id: object) -> Call | None:
        """Return the call with this id, if it is still pending."""
        return self._calls.get(invocation_id) if isinstance(invocation_id, str) else None

    def end(self, call: Call, result: Any, error: ErrorBody | None) -> None:
        """Remove a call and deliver its outcome."""
        if call.invocation_id is not None:
            self._calls.pop(call.invocation_id, None)
        call.end(result, error)
        if len(self._due) > 2 * len(self._calls) + 256:
            # Answered calls stay in the heap until their deadlines, which can be far away.
            self._due = [entry for entry in self._due if not entry[2].done]
            heapq.heapify(self._due)

    def expire(self, now: float, engine_enforces: bool) -> list[Call]:
        """
        End the calls whose deadlines have passed.

        Args:
            now: Milliseconds, on the clock of the deadlines.
            engine_enforces: Whether the engine announced ``timeout``. A sent call then gets
                `TIMEOUT_GRACE_MS` more, because the engine's own error says more.

        Returns:
            The calls that have ended.

        """
        ended = []
        while (due := self.next_deadline) is not None and due <= now:
            call = heapq.heappop(self._due)[2]
            if call.sent and engine_enforces and not call.extended:
                call.extended = True
                self._push(call.deadline + TIMEOUT_GRACE_MS, call)
                continue
            message = f"invocation timed out after {call.timeout_ms:g}ms"
            self.end(call, None, {"code": "TIMEOUT", "message": message})
            ended.append(call)
        return ended

    def end_sent(self, error: ErrorBody) -> None:
        """End every call that was sent: its connection is closed."""
        for call in [call for call in self._calls.values() if call.sent]:
            self.end(call, None, error)

    def end_all(self, error: ErrorBody) -> None:
        """End every call."""
        for call in list(self._calls.values()):
            self.end(call, None, error)

    def _push(self, due: float, call: Call) -> None:
        self._added += 1  # Breaks ties of equal deadlines: calls cannot be compared.
        heapq.heappush(self._due, (due, self._added, call))


class CallIds:
    """
    Call ids of one worker, in the form of UUIDs.

    A random prefix per worker and a counter: a random id per call would cost a system call.
    """

    def __init__(self) -> None:
        self._front = str(uuid.uuid4())[:24]
        self._numbers = itertools.count(1)

    def make(self) -> str:
        """Return the next id; thread-safe."""
        return f"{self._front}{next(self._numbers):012x}"


def plan_call(
    request: TriggerRequest,
    default_ms: float,
    context: CallContext | None,
    now: float,
    ids: CallIds,
) -> Call:
    """
    Check a request and encode its parts.

    Args:
        request: What to call.
        default_ms: Timeout if the request has none.
        context: The invocation whose handler makes this call; it passes on its deadline
            and its trace context.
        now: Milliseconds.
        ids: Generates the id of the call.

    Raises:
        InvocationError: ``TIMEOUT`` when the calling handler has no time left.
        EngineError: ``INVALID_ARGUMENTS`` when a key is missing, unknown or out of bounds,
            ``serialization_error`` when JSON cannot represent the payload.

    """
    check_keys(request, TriggerRequest, "request")
    function_id = check_id(request["function_id"], "function_id")
    action = check_action(request.get("action"))
    timeout = request.get("timeout_ms")
    timeout_ms = default_ms if timeout is None else check_timeout(timeout)
    left = None if context is None else context.remaining_ms
    if left is not None and action != "void":
        timeout_ms = min(timeout_ms, round(left))
        if timeout_ms <= 0:
            message = "invocation timed out after 0ms: the handler that made it has no time left"
            raise InvocationError("TIMEOUT", message, function_id=function_id)
    call = Call(
        function_id=function_id,
        timeout_ms=timeout_ms,
        deadline=now + timeout_ms,
        invocation_id=None if action == "void" else ids.make(),
        action=None if action is None else json.dumps(dict(request["action"] or {})),
        metadata=encode_if(request.get("metadata"), f"Metadata of {function_id}"),
        namespace=check_namespace(request.get("namespace")),
    )
    if "payload" in request:
        call.payload = encode(request["payload"], f"Payload of {function_id}")
    if context is not None:
        call.traceparent, call.baggage = context.traceparent, context.baggage
    if call.weight > LARGE_CHARS:
        check_size(call.encode(now), f"The call of {function_id}")
    return call


def failure(call: Call, error: ErrorBody) -> Exception:
    """Convert a call's error body to an exception."""
    return invocation_error(error, call.function_id, call.invocation_id)


class ThreadWaiter:
    """Blocks a thread until a call ends; progress callbacks run in the same thread."""

    def __init__(self, call: Call, on_progress: Callable[[Any], object] | None) -> None:
        self._call = call
        self._on_progress = on_progress
        self._arrived: queue.SimpleQueue[tuple[bool, Any, ErrorBody | None]] = queue.SimpleQueue()
        call.settle = lambda result, error: self._arrived.put((True, result, error))
        if on_progress is not None:
            call.progress = lambda data: self._arrived.put((False, data, None))

    def wait(self, now: Callable[[], float]) -> Any:
        """
        Wait for the end of the call.

        Raises:
            InvocationError: When the call failed.

        """
        while True:
            # Normally the loop ends the call in time; this covers a loop that a handler blocks.
            left = self._call.deadline + TIMEOUT_GRACE_MS + _STUCK_MS - now()
            try:
                ended, value, error = self._arrived.get(timeout=max(0.0, left) / 1000)
            except queue.Empty:
                message = f"invocation timed out after {self._call.timeout_ms:g}ms"
                raise failure(self._call, {"code": "TIMEOUT", "message": message}) from None
            if error is not None:
                raise failure(self._call, error)
            if ended:
                return value
            if self._on_progress is not None:
                self._on_progress(value)


class LoopWaiter:
    """Awaits a call on the running loop, which may be the worker's or any other."""

    def __init__(self, call: Call, on_progress: Callable[[Any], object] | None) -> None:
        mailbox = running_loop_mailbox()
        loop = mailbox.loop
        self._future: asyncio.Future[Any] = loop.create_future()
        self._call = call
        call.settle = lambda result, error: mailbox.put(lambda: self._end(result, error))
        if on_progress is not None:
            # In a loop callback of its own, because it may raise.
            call.progress = lambda data: mailbox.put(lambda: loop.call_soon(on_progress, data))

    async def wait(self) -> Any:
        """
        Wait for the end of the call.

        Raises:
            InvocationError: When the call failed.

        """
        return await self._future

    def _end(self, result: Any, error: ErrorBody | None) -> None:
        if self._future.done():
            return  # The caller's task was cancelled.
        if error is not None:
            self._future.set_exception(failure(self._call, error))
        else:
            self._future.set_result(result)
