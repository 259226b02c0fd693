"""How a call begins and ends for its caller: a checked request in, a value or an error out."""

from __future__ import annotations

import asyncio
import itertools
import json
import queue
import uuid
from collections.abc import Callable
from typing import Any

from ._codec import encode
from ._context import CallContext
from ._errors import ErrorBody, InvocationError, invocation_error
from ._limits import TIMEOUT_GRACE_MS
from ._mailbox import mailbox_here
from ._offers import encode_if
from ._requests import (
    TriggerRequest,
    check_action,
    check_id,
    check_keys,
    check_namespace,
    check_timeout,
)
from ._waiting import Call

_STUCK_MS = 5_000


class CallIds:
    """
    Ids of the calls of one worker, in the form of UUIDs.

    Chance in front, the same for all, and a number behind: a random id for each call would
    take a system call.
    """

    def __init__(self) -> None:
        self._front = str(uuid.uuid4())[:24]
        self._numbers = itertools.count(1)

    def make(self) -> str:
        """Make the next one; any thread may."""
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
        default_ms: Time-out if the request names none.
        context: The run this call belongs to; its deadline and its trace hold here too.
        now: Milliseconds.
        ids: Where the id of the call comes from.

    Raises:
        InvocationError: ``TIMEOUT`` when the run this call belongs to has no time left.
        EngineError: ``INVALID_ARGUMENTS`` when a key is missing, unknown or out of bounds,
            ``serialization_error`` when JSON cannot hold the payload.

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
    return call


def failure(call: Call, error: ErrorBody) -> Exception:
    """Make the error that a call ended with."""
    return invocation_error(error, call.function_id, call.invocation_id)


class ThreadAnswer:
    """Waits for a call in a thread; news are handed over in that thread as well."""

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
            # The loop ends the call in time; this is for a loop that a handler blocks.
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


class LoopAnswer:
    """Waits for a call on the running loop, whosever it is."""

    def __init__(self, call: Call, on_progress: Callable[[Any], object] | None) -> None:
        mailbox = mailbox_here()
        loop = mailbox.loop
        self._future: asyncio.Future[Any] = loop.create_future()
        self._call = call
        call.settle = lambda result, error: mailbox.put(lambda: self._end(result, error))
        if on_progress is not None:
            # On its own, for it may raise.
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
