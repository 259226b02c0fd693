"""Calls on their way: who waits for which answer, and until when; one heap of deadlines."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._codec import encode_ids, encode_trace, quote
from ._errors import ErrorBody
from ._limits import TIMEOUT_GRACE_MS

Settle = Callable[[Any, "ErrorBody | None"], None]
"""Is told once how a call ended: its result, or an error."""


@dataclass(eq=False, slots=True)
class Call:
    """One call of this worker; its texts are JSON already, its times are milliseconds."""

    function_id: str
    timeout_ms: float
    deadline: float
    invocation_id: str | None = None
    """None: nobody waits, and nothing is answered."""
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
        """What the call takes in a queue, about, in bytes."""
        return 256 + len(self.payload or "") + len(self.metadata or "")

    def encode(self, now: float) -> str:
        """Make its frame, with what is left of its time."""
        head = ""
        if self.namespace is not None:
            head = f',"namespace":{quote(self.namespace)}'
        if self.action is not None:
            head += f',"action":{self.action}'
        if self.invocation_id is not None:
            # The engine uses its own default where nobody waits (PROTOCOL 3.3).
            head += f',"timeout_ms":{max(1, round(self.deadline - now))}'
        if self.metadata is not None:
            head += f',"metadata":{self.metadata}'
        head += encode_trace(self.traceparent, self.baggage)
        data = "" if self.payload is None else f',"data":{self.payload}'
        ids = encode_ids("invokefunction", self.invocation_id, self.function_id)
        return f"{ids}{head}{data}}}"

    def end(self, result: Any, error: ErrorBody | None) -> None:
        """Tell whoever waits, once."""
        if self.done:
            return
        self.done = True
        if self.settle is not None:
            self.settle(result, error)


class Waiting:
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
        """Wait for a call."""
        assert call.invocation_id is not None, "a call that waits has an id"
        self._calls[call.invocation_id] = call
        self._push(call.deadline, call)

    def get(self, invocation_id: object) -> Call | None:
        """Return the call of this id, if it still waits."""
        return self._calls.get(invocation_id) if isinstance(invocation_id, str) else None

    def end(self, call: Call, result: Any, error: ErrorBody | None) -> None:
        """Take a call out and tell whoever waits."""
        if call.invocation_id is not None:
            self._calls.pop(call.invocation_id, None)
        call.end(result, error)
        if len(self._due) > 2 * len(self._calls) + 256:
            # Answered calls stay in the heap until they are due; that can be long.
            self._due = [entry for entry in self._due if not entry[2].done]
            heapq.heapify(self._due)

    def expire(self, now: float, engine_enforces: bool) -> list[Call]:
        """
        End the calls whose time is over.

        Args:
            now: Milliseconds, on the clock of the deadlines.
            engine_enforces: The engine announced ``timeout``: a call that it has gets a
                little longer, because its own word on the deadline says more.

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
        """End every call that has left: the line it left on is gone."""
        for call in [call for call in self._calls.values() if call.sent]:
            self.end(call, None, error)

    def end_all(self, error: ErrorBody) -> None:
        """End every call."""
        for call in list(self._calls.values()):
            self.end(call, None, error)

    def _push(self, due: float, call: Call) -> None:
        self._added += 1  # Equal deadlines must not be decided by comparing calls.
        heapq.heappush(self._due, (due, self._added, call))
