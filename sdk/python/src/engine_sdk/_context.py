"""What a handler may know about its run, and which run the present code belongs to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ._codec import Invocation

CURRENT: ContextVar[CallContext | None] = ContextVar("engine_sdk_current", default=None)
"""The run that the present code belongs to: its deadline holds for calls made here."""


_LOCK = threading.Lock()
"""One for all runs: it is held for a moment, and by few."""


class CallContext:
    """
    One run of a function, as its handler sees it.

    Attributes:
        function_id: The function that was called.
        invocation_id: The run, as the engine's logs name it.
        caller: Who called, where the engine tells it.
        timeout_ms: What was left of the caller's time at the start; None: not told.
        traceparent: The caller's W3C trace context; handed on by calls made here.
        baggage: The caller's W3C baggage; handed on as well.
        cancel_reason: Why the result is no longer wanted, once `cancelled`: the caller's own
            words, ``"timeout"``, ``"line lost"``; may be None.

    Example:
        def count(payload, metadata, context):
            for n in range(payload["to"]):
                if context.cancelled:
                    return None
                context.progress({"at": n})

    """

    def __init__(
        self,
        invocation: Invocation,
        now: Callable[[], float],
        progress: Callable[[Invocation, Any], None],
    ) -> None:
        self.function_id = invocation.function_id
        self.invocation_id = invocation.invocation_id
        self.caller = invocation.caller
        self.timeout_ms = invocation.timeout_ms
        self.traceparent = invocation.traceparent
        self.baggage = invocation.baggage
        self.cancel_reason: str | None = None
        self._invocation = invocation
        self._now = now
        self._progress = progress
        self._is_cancelled = False
        self._over = False
        # Made when needed: most runs are neither cancelled nor make calls.
        self._sleeper: threading.Event | None = None
        self._watchers: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants the result any more; a sync handler should then return."""
        return self._is_cancelled

    def wait_cancelled(self, seconds: float) -> bool:
        """
        Sleep, but not beyond the moment nobody wants the result any more.

        Args:
            seconds: How long at most.

        Returns:
            Whether the run was cancelled.

        """
        with _LOCK:
            if self._is_cancelled:
                return True
            if self._sleeper is None:
                self._sleeper = threading.Event()
        return self._sleeper.wait(seconds)

    @property
    def remaining_ms(self) -> float | None:
        """What is left of the caller's time, below 0 if it is over; None: not told, or ended."""
        deadline = self._invocation.deadline
        return None if deadline is None or self._over else deadline - self._now()

    def progress(self, data: Any) -> None:
        """
        Send the caller news of this run; ignored after its end.

        Args:
            data: Anything JSON can hold.

        Raises:
            EngineError: ``serialization_error`` when JSON cannot hold the data.

        """
        self._progress(self._invocation, data)

    def cancel(self, reason: str | None) -> None:
        """Say that nobody wants the result any more; for the SDK, not for handlers."""
        with _LOCK:
            if self._is_cancelled:
                return
            self.cancel_reason = reason
            self._is_cancelled = True
            watchers, self._watchers = self._watchers, []
        if self._sleeper is not None:
            self._sleeper.set()
        for watcher in watchers:
            watcher()

    def end(self) -> None:
        """Note that the handler has ended: a task it left behind has its own time."""
        self._over = True

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Run something once when the run is cancelled, at once if it is; returns the undo."""
        with _LOCK:
            if not self._is_cancelled:
                self._watchers.append(watcher)
                return lambda: self._forget(watcher)
        watcher()
        return lambda: None

    def _forget(self, watcher: Callable[[], None]) -> None:
        with _LOCK:
            if watcher in self._watchers:
                self._watchers.remove(watcher)
