"""
What this process uses, and how late the worker's event loop is.

Lateness is measured by a short timer on the loop: that is what a call that arrives feels, also
when another thread keeps the interpreter to itself.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import Callable

from ._limits import LOOP_LAG_SAMPLE_MS
from ._otlp import Gauge

_SAMPLES_MAX = 60_000 // LOOP_LAG_SAMPLE_MS


class Gauges:
    """Measures this process; belongs to one loop."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        processor_time: Callable[[], float] = time.process_time,
        statm: str = "/proc/self/statm",
    ) -> None:
        self._now = now
        self._processor_time = processor_time
        self._statm = statm
        self._lags: deque[float] = deque(maxlen=_SAMPLES_MAX)
        self._read_at = now()
        self._processor_at = processor_time()

    async def watch_loop(self) -> None:
        """Look again and again how late the loop is; for ever."""
        while True:
            due = self._now() + LOOP_LAG_SAMPLE_MS / 1000
            await asyncio.sleep(LOOP_LAG_SAMPLE_MS / 1000)
            self.note_lag(self._now() - due)

    def note_lag(self, seconds: float) -> None:
        """Take one measured lateness."""
        self._lags.append(max(0.0, seconds))

    def read(self) -> list[Gauge]:
        """Tell what was measured since the last time; what cannot be told is left out."""
        gauges = []
        if (memory := self._memory()) is not None:
            gauges.append(Gauge("process.memory.usage", "By", memory))
        now, processor = self._now(), self._processor_time()
        if now > self._read_at:
            share = (processor - self._processor_at) / (now - self._read_at)
            gauges.append(Gauge("process.cpu.utilization", "1", share))
        self._read_at, self._processor_at = now, processor
        if lags := sorted(self._lags):
            p99 = lags[math.ceil(len(lags) * 0.99) - 1]
            gauges.append(Gauge("engine.event_loop.lag.p99", "s", p99))
            gauges.append(Gauge("engine.event_loop.lag.max", "s", lags[-1]))
            self._lags.clear()
        return gauges

    def _memory(self) -> int | None:
        try:  # Only Linux tells how much memory is resident now.
            with open(self._statm, encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError, AttributeError):
            return None
