"""The invocation as its handler sees it, and the invocation that the current code belongs to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ._codec import Invocation

CURRENT: ContextVar[CallContext | None] = ContextVar("engine_sdk_current", default=None)
"""The invocation that the current code belongs to; calls made here inherit its deadline."""


_LOCK = threading.Lock()
"""Shared by all invocations: it is held briefly and rarely contended."""


class CallContext:
    """
    One invocation of a function, as its handler sees it.

    Attributes:
        function_id: The function that was called.
        invocation_id: The invocation, as the engine's logs name it.
        caller: Id of the calling worker, where the engine sends it.
        timeout_ms: The caller's remaining time at the start; None: not sent.
        traceparent: The caller's W3C trace context; calls made here pass it on.
        baggage: The caller's W3C baggage; calls made here pass it on.
        cancel_reason: Why the invocation was cancelled, once `cancelled`: the caller's reason,
            ``"timeout"``, ``"connection lost"``; may be None.

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
        # Created on demand: most invocations are neither cancelled nor make calls.
        self._sleeper: threading.Event | None = None
        self._watchers: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """Whether the invocation was cancelled; a sync handler should then return."""
        return self._is_cancelled

    def wait_cancelled(self, seconds: float) -> bool:
        """
        Sleep until the time is up or the invocation is cancelled.

        Args:
            seconds: Longest sleep.

        Returns:
            Whether the invocation was cancelled.

        """
        with _LOCK:
            if self._is_cancelled:
                return True
            if self._sleeper is None:
                self._sleeper = threading.Event()
        return self._sleeper.wait(seconds)

    @property
    def remaining_ms(self) -> float | None:
        """The caller's remaining time, negative once it has passed; None: not sent, or ended."""
        deadline = self._invocation.deadline
        return None if deadline is None or self._over else deadline - self._now()

    def progress(self, data: Any) -> None:
        """
        Send progress to the caller; ignored after the end of the invocation.

        Args:
            data: Any JSON value.

        Raises:
            EngineError: ``serialization_error`` when JSON cannot represent the data.

        """
        self._progress(self._invocation, data)

    def cancel(self, reason: str | None) -> None:
        """Mark the invocation as cancelled; for the SDK, not for handlers."""
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
        """Mark the handler as ended: tasks that it left running do not inherit its deadline."""
        self._over = True

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call ``watcher`` on cancellation, immediately if cancelled already; returns the undo."""
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
