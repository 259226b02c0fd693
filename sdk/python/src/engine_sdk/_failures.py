"""
Logs the tracebacks of handlers that failed unexpectedly.

The error travels to the caller, which may be far away or wait for no result, so the worker's own
log shows it as well, line by line. A handler may fail thousands of times per second: the number of
tracebacks is bounded, and a later line says how many were left out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from ._errors import ErrorBody

FAILURES_LOGGED_MAX: Final = 10
"""Tracebacks that a worker logs within `FAILURES_WINDOW_MS`."""

FAILURES_WINDOW_MS: Final = 10_000
"""See `FAILURES_LOGGED_MAX`."""

log = logging.getLogger("engine_sdk")


class FailureLog:
    """Logs failures of one worker's handlers; thread-safe."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._window_start = float("-inf")
        self._logged = 0
        self._left = 0

    def note(self, function_id: str, error: ErrorBody) -> None:
        """Log the traceback of an error, unless its handler raised one with a code of its own."""
        if error["code"] != "invocation_failed" or "stacktrace" not in error:
            return
        with self._lock:
            left = 0
            if self._now() - self._window_start >= FAILURES_WINDOW_MS:
                left, self._left, self._logged = self._left, 0, 0
                self._window_start = self._now()
            is_logged = self._logged < FAILURES_LOGGED_MAX
            if is_logged:
                self._logged += 1
            else:
                self._left += 1
        if left:
            log.error("[engine] %d more failed calls were not logged", left)
        if is_logged:
            lines = error["stacktrace"].rstrip().replace("\n", "\n  ")
            log.error("[engine] %s failed:\n  %s", function_id, lines)
