"""
What a worker tells about itself: its log lines, the spans of its handlers, what it uses.

Any thread may add; sending belongs to the loop of the line's thread, over a line of its own.
Everything is queued, bounded, and quiet: no handler is to suffer from being watched. What
cannot be sent is left out, and the logs say how many lines that were.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import random
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from ._context import CURRENT
from ._errors import ErrorBody
from ._gauges import Gauges
from ._identity import __version__
from ._limits import (
    GAUGES_FIRST_MS,
    GAUGES_MS,
    GAUGES_MS_MAX,
    GAUGES_MS_MIN,
    LEAVE_MS,
    SPANS_PER_SECOND,
    TELEMETRY_BATCH_MS,
)
from ._messages import Invocation
from ._otlp import (
    Level,
    Signal,
    SpanRecord,
    encode_frame,
    encode_gauge,
    encode_log,
    encode_span,
)
from ._reconnect import wait_before
from ._requests import InitOptions, ReconnectOptions
from ._telemetry_queue import TelemetryQueue, TokenBucket
from ._traceparent import TraceIds, looks_sampled, read_traceparent
from ._transport import Dial, LineLost, Transport
from ._websocket import WebSocketDial


def telemetry_dial(address: str, options: InitOptions) -> Dial | None:
    """Tell how to reach the telemetry route; None when the worker is to send none."""
    if not options.telemetry or os.environ.get("OTEL_ENABLED", "").lower() in ("false", "0"):
        return None
    parts = urlsplit(address)
    url = parts._replace(path=parts.path.rstrip("/") + "/otel").geturl()
    # The token and nothing else: the other headers are for the worker's own line.
    headers = {
        name: value for name, value in options.headers.items() if name.lower() == "authorization"
    }
    return WebSocketDial(url, options.token, {} if options.token else headers, batch=False)


class Span:
    """The run of one handler, while it lasts."""

    def __init__(self, invocation: Invocation, ids: TraceIds) -> None:
        self.invocation = invocation
        self.ids = ids
        self.start = time.time()
        self.seconds: float | None = None
        """How long it took, once it has ended."""
        self._began = time.perf_counter()

    def stop(self) -> None:
        """Note that it has ended; once more changes nothing."""
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

    # Any thread.

    def take_log(self, level: Level, text: str, plain: Any, service: str | None) -> bool:
        """Take a log line, for the call in whose handler it is said; false: it is left out."""
        if self._ended:
            return False
        context = CURRENT.get()
        ids = None if context is None else read_traceparent(context.traceparent)
        record = encode_log(level, text, plain, time.time(), ids)
        taken = self._logs.add(service or self._service, record)
        self._send_soon()
        return taken

    def begin(self, invocation: Invocation) -> Span | None:
        """Note that a handler begins; None: nobody wants to know."""
        if self._ended or invocation.traceparent is None:
            return None
        # In this order, since a busy worker is out of tokens nearly always.
        if not looks_sampled(invocation.traceparent) or not self._tokens.take(_now_ms()):
            return None
        ids = read_traceparent(invocation.traceparent)
        return None if ids is None else Span(invocation, ids)

    def end(self, span: Span, error: ErrorBody | None) -> None:
        """Note how a handler has ended."""
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
        if not self._signalled:  # Once for a batch; twice does no harm.
            self._signalled = True
            self._post(self._wake.set)

    # The loop of the line's thread.

    def stop(self) -> None:
        """Send what waits, then end."""
        self._ended = True
        self._stop.set()
        self._wake.set()

    def last_words(self) -> list[bytes]:
        """Take what waits, for the worker's own line, if there is no line of telemetry."""
        self._ended = True
        return [] if self._transport is not None else list(self._frames())

    async def run(self) -> None:
        """Stay on a line until told to stop."""
        attempt = 0
        while not self._stop.is_set():
            attempt += 1
            try:
                self._transport = await self._or_stop(self._dial())
            except LineLost:
                self._transport = None
            if self._transport is not None:
                attempt = 1
                await self._carry(self._transport)
                self._transport = None
            if not self._stop.is_set():
                wait = wait_before(attempt, ReconnectOptions(), random.random())
                await self._or_stop(asyncio.sleep(wait / 1000))

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
        except (asyncio.TimeoutError, LineLost):
            pass  # The peer does not answer; the line is gone all the same.
        finally:
            for task in (*tasks, stopper):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, transport: Transport) -> None:
        await transport.ended()  # Nothing comes.

    async def _write(self, transport: Transport) -> None:
        while True:
            if not self._stop.is_set():
                await self._wake.wait()
                await self._or_stop(asyncio.sleep(TELEMETRY_BATCH_MS / 1000))
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
            if gauges := [encode_gauge(gauge, at) for gauge in self._gauges.read()]:
                await _send(transport, self._frame("MTRC", {self._service: gauges}))
            await asyncio.sleep(_gauges_ms() / 1000)

    def _frames(self) -> Iterator[bytes]:
        """Take what waits, frame by frame."""
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

    async def _or_stop(self, work: Any) -> Any:
        """Wait for work, or give it up when told to stop."""
        task = asyncio.ensure_future(work)
        stopper = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({task, stopper}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            task.cancel()
            stopper.cancel()


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
