"""
Telemetry of a worker: log lines, spans of its handlers, gauges of its process.

Any thread may add records; the worker's loop sends them, over the connection to ``/otel``. Queues
are bounded and failures are silent, so that telemetry never delays or fails a handler. Records
that do not fit are dropped; a log record states how many.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import platform
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from ._codec import Invocation, __version__
from ._context import CURRENT
from ._errors import ErrorBody
from ._otlp import (
    Gauge,
    Level,
    Signal,
    SpanRecord,
    TraceIds,
    encode_frame,
    encode_gauge,
    encode_log,
    encode_span,
    looks_sampled,
    read_traceparent,
)
from ._reconnect import until_stopped, wait_before
from ._requests import InitOptions, ReconnectOptions
from ._transport import LEAVE_MS, ConnectionLost, Dial, Transport, WebSocketDial

TELEMETRY_BATCH_MS: Final = 100
"""Logs and spans are collected for so long before they are sent."""

TELEMETRY_QUEUE_CHARS_MAX: Final = 1024 * 1024
"""Queued logs, and queued spans, in characters; further ones are dropped."""

TELEMETRY_FRAME_CHARS_MAX: Final = 256 * 1024
"""Characters of logs or spans in one frame; the rest goes into the next."""

SPANS_PER_SECOND: Final = 100
"""Spans of handlers that a worker sends in a second."""

GAUGES_MS: Final = 5_000
"""Interval of gauges, unless ``OTEL_METRIC_EXPORT_INTERVAL`` is set."""

GAUGES_MS_MIN: Final = 500
"""Shortest such interval."""

GAUGES_MS_MAX: Final = 3_600_000
"""Longest such interval."""

GAUGES_FIRST_MS: Final = 1_000
"""Time until the first gauges."""

RECONNECT: Final = ReconnectOptions(max_ms=30_000)
"""Telemetry can wait, so the engine has less to do after an outage."""

LOOP_LAG_SAMPLE_MS: Final = 50
"""Interval at which the lateness of the event loop is measured."""

_SAMPLES_MAX = 60_000 // LOOP_LAG_SAMPLE_MS


def telemetry_dial(address: str, options: InitOptions) -> Dial | None:
    """Return the dial of the telemetry route; None when telemetry is off."""
    if not options.telemetry or os.environ.get("OTEL_ENABLED", "").lower() in ("false", "0"):
        return None
    parts = urlsplit(address)
    url = parts._replace(path=parts.path.rstrip("/") + "/otel").geturl()
    # Only the token: other headers are for the worker's own connection.
    headers = {
        name: value for name, value in options.headers.items() if name.lower() == "authorization"
    }
    return WebSocketDial(url, options.token, {} if options.token else headers, batch=False)


class Span:
    """The span of a running handler."""

    def __init__(self, invocation: Invocation, ids: TraceIds) -> None:
        self.invocation = invocation
        self.ids = ids
        self.start = time.time()
        self.seconds: float | None = None
        """Duration, once it has ended."""
        self._began = time.perf_counter()

    def stop(self) -> None:
        """End it; idempotent."""
        if self.seconds is None:
            self.seconds = time.perf_counter() - self._began


class Telemetry:
    """The telemetry of one worker."""

    def __init__(
        self,
        service: str,
        dial: Dial,
        post: Callable[[Callable[[], None]], None],
        worker_id: Callable[[], str | None],
    ) -> None:
        self.load: Callable[[], list[Gauge]] = list
        """Measures the handlers; called in the worker's loop."""
        self._service = service
        self._dial = dial
        self._post = post
        self._worker_id = worker_id
        self._logs = TelemetryQueue()
        self._spans = TelemetryQueue()
        self._tokens = TokenBucket(SPANS_PER_SECOND, _now_ms())
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._signalled = False
        self._ended = False
        self._transport: Transport | None = None
        self._gauges = Gauges()

    # Thread-safe.

    def take_log(self, level: Level, text: str, plain: Any, service: str | None) -> bool:
        """Queue a log line, with the trace of the current handler; false: dropped."""
        if self._ended:
            return False
        context = CURRENT.get()
        ids = None if context is None else read_traceparent(context.traceparent)
        record = encode_log(level, text, plain, time.time(), ids)
        taken = self._logs.add(service or self._service, record)
        self._send_soon()
        return taken

    def begin(self, invocation: Invocation) -> Span | None:
        """Start the span of a handler; None: the call is not traced, or the rate is used up."""
        if self._ended or invocation.traceparent is None:
            return None
        # In this order, because a busy worker is out of tokens nearly always.
        if not looks_sampled(invocation.traceparent) or not self._tokens.take(_now_ms()):
            return None
        ids = read_traceparent(invocation.traceparent)
        return None if ids is None else Span(invocation, ids)

    def end(self, span: Span, error: ErrorBody | None) -> None:
        """End and queue the span of a handler."""
        span.stop()
        attributes = {
            "engine.function.id": span.invocation.function_id,
            "engine.invocation.id": span.invocation.invocation_id,
            "engine.error_code": None if error is None else error["code"],
        }
        record = SpanRecord(
            ids=span.ids,
            span_id=secrets.token_hex(8),
            name=f"execute {span.invocation.function_id}",
            start=span.start,
            end=span.start + (span.seconds or 0.0),
            attributes=attributes,
            error=None if error is None else error["message"],
        )
        self._spans.add(self._service, encode_span(record))
        self._send_soon()

    def _send_soon(self) -> None:
        if not self._signalled:  # Once per frame; a race only wakes the loop twice.
            self._signalled = True
            self._post(self._wake.set)

    # In the worker's thread.

    def stop(self) -> None:
        """Send what is queued, then end."""
        self._ended = True
        self._stop.set()
        self._wake.set()

    def final_frames(self) -> list[bytes]:
        """Take what is queued, for the worker's own connection, if ``/otel`` is not connected."""
        self._ended = True
        return [] if self._transport is not None else list(self._frames())

    async def run(self) -> None:
        """Stay connected until `stop`."""
        attempt = 0
        while not self._stop.is_set():
            attempt += 1
            try:
                self._transport = await until_stopped(self._dial(), self._stop)
            except ConnectionLost:
                self._transport = None
            if self._transport is not None:
                attempt = 1
                await self._carry(self._transport)
                self._transport = None
            if not self._stop.is_set():
                wait = wait_before(attempt, RECONNECT, random.random())
                await until_stopped(asyncio.sleep(wait / 1000), self._stop)

    async def _carry(self, transport: Transport) -> None:
        tasks = [
            asyncio.ensure_future(work)
            for work in (
                self._read(transport),
                self._write(transport),
                self._measure(transport),
                self._gauges.watch_loop(),
            )
        ]
        stopper = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({*tasks, stopper}, return_when=asyncio.FIRST_COMPLETED)
            if self._stop.is_set():
                await asyncio.wait(
                    tasks, timeout=LEAVE_MS / 1000, return_when=asyncio.FIRST_COMPLETED
                )
            await asyncio.wait_for(transport.close(), LEAVE_MS / 1000)
        except (asyncio.TimeoutError, ConnectionLost):
            pass  # The peer does not answer; the connection is closed anyway.
        finally:
            for task in (*tasks, stopper):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, transport: Transport) -> None:
        await transport.ended()  # The engine sends nothing here.

    async def _write(self, transport: Transport) -> None:
        while True:
            if not self._stop.is_set():
                await self._wake.wait()
                await until_stopped(asyncio.sleep(TELEMETRY_BATCH_MS / 1000), self._stop)
            self._wake.clear()
            self._signalled = False
            ended = self._stop.is_set()
            for frame in self._frames():
                await _send(transport, frame)
            if ended:
                return

    async def _measure(self, transport: Transport) -> None:
        await asyncio.sleep(GAUGES_FIRST_MS / 1000)
        while True:
            at = time.time()
            read = [*self.load(), *self._gauges.read()]
            if gauges := [encode_gauge(gauge, at) for gauge in read]:
                await _send(transport, self._frame("MTRC", {self._service: gauges}))
            await asyncio.sleep(_gauges_ms() / 1000)

    def _frames(self) -> Iterator[bytes]:
        """Take what is queued, frame by frame."""
        while len(self._logs) or len(self._spans):
            dropped = self._logs.take_dropped()
            if logs := self._logs.take_frame():
                if dropped:
                    logs.setdefault(self._service, []).append(_missing(dropped))
                yield self._frame("LOGS", logs)
            if spans := self._spans.take_frame():
                yield self._frame("OTLP", spans)

    def _frame(self, signal: Signal, groups: dict[str, list[str]]) -> bytes:
        return encode_frame(
            signal, ((self._resource(service), records) for service, records in groups.items())
        )

    def _resource(self, service: str) -> dict[str, Any]:
        return {
            "service.name": service,
            "service.instance.id": self._worker_id(),
            "telemetry.sdk.name": "engine-sdk",
            "telemetry.sdk.language": "python",
            "telemetry.sdk.version": __version__,
            "process.pid": os.getpid(),
            "process.runtime.name": platform.python_implementation().lower(),
            "process.runtime.version": platform.python_version(),
        }


class TelemetryQueue:
    """The queued records of one signal, oldest first; thread-safe. Counts what does not fit."""

    def __init__(self, chars_max: int = TELEMETRY_QUEUE_CHARS_MAX) -> None:
        self._chars_max = chars_max
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, str]] = deque()
        self._chars = 0
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, service: str, text: str) -> bool:
        """Queue a record; false when there is no room."""
        with self._lock:
            if self._chars + len(text) > self._chars_max:
                self._dropped += 1
                return False
            self._waiting.append((service, text))
            self._chars += len(text)
            return True

    def take_dropped(self) -> int:
        """Return and reset the number of dropped records."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
            return dropped

    def take_frame(self) -> dict[str, list[str]]:
        """Remove the oldest records, about one frame, grouped by service."""
        groups: dict[str, list[str]] = {}
        size = 0
        with self._lock:
            while self._waiting:
                service, text = self._waiting[0]
                if size > 0 and size + len(text) > TELEMETRY_FRAME_CHARS_MAX:
                    break
                self._waiting.popleft()
                self._chars -= len(text)
                size += len(text)
                groups.setdefault(service, []).append(text)
        return groups


class TokenBucket:
    """A rate limit with bursts of one second's worth; thread-safe."""

    def __init__(self, per_second: float, now_ms: float) -> None:
        self._lock = threading.Lock()
        self._per_second = per_second
        self._tokens = per_second
        self._at = now_ms

    def take(self, now_ms: float) -> bool:
        """Take a token, if there is one."""
        with self._lock:
            gained = max(0.0, now_ms - self._at) * self._per_second / 1000
            self._tokens = min(self._per_second, self._tokens + gained)
            self._at = now_ms
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


class Gauges:
    """Measures the process and the lateness of one loop, which calls that arrive experience."""

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
        """Measure the lateness of the loop until cancelled."""
        while True:
            due = self._now() + LOOP_LAG_SAMPLE_MS / 1000
            await asyncio.sleep(LOOP_LAG_SAMPLE_MS / 1000)
            self.note_lag(self._now() - due)

    def note_lag(self, seconds: float) -> None:
        """Add a measured lateness."""
        self._lags.append(max(0.0, seconds))

    def read(self) -> list[Gauge]:
        """Return what was measured since the last call; unavailable values are left out."""
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
        try:  # Only Linux has this file.
            with open(self._statm, encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError, AttributeError):
            return None


async def _send(transport: Transport, frame: bytes) -> None:
    transport.write([frame])
    await transport.drain()


def _missing(lines: int) -> str:
    text = "Log lines were left out, since there were more than can be sent"
    return encode_log("warn", text, {"lines": lines}, time.time(), None)


def _gauges_ms() -> float:
    with contextlib.suppress(ValueError):
        asked = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL") or GAUGES_MS)
        return min(GAUGES_MS_MAX, max(GAUGES_MS_MIN, asked))
    return GAUGES_MS


def _now_ms() -> float:
    return time.monotonic() * 1000
