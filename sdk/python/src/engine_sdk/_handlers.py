"""
Runs handlers: coroutine functions on the loop, all others in threads.

An exception in a handler, SystemExit included, ends its invocation and nothing else.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ._codec import Invocation, encode, encode_error
from ._context import CURRENT, CallContext
from ._errors import ErrorBody, describe_raised, invalid
from ._http_stream import Streamed, send_in_thread, send_stream, streamed_response
from ._otlp import Gauge
from ._output_marks import finish_output
from ._registrations import Function
from ._session import CANCELLED, Session
from ._telemetry import Span, Telemetry
from ._threads import ThreadPool

LATE_FUNCTIONS_MAX: Final = 20
"""Functions that run past their deadline and are reported, the latest first."""

FAILURES_LOGGED_MAX: Final = 10
"""Tracebacks that a worker logs within `FAILURES_WINDOW_MS`."""

FAILURES_WINDOW_MS: Final = 10_000
"""See `FAILURES_LOGGED_MAX`."""

log = logging.getLogger("engine_sdk")

Bound = Callable[[Any, Any, CallContext], Any]
"""A handler adapted to all three arguments, whichever the user's handler accepts."""


def bind(handler: Callable[..., Any], what: str) -> tuple[Bound, bool]:
    """
    Adapt a handler to its three arguments; also return whether it is a coroutine function.

    A handler takes the payload and, if its signature has room, ``metadata`` and ``context``.
    A parameter with a default is filled only if it has one of these names, so that
    ``lambda payload, shop=shop: …`` keeps its shop.

    Raises:
        EngineError: ``INVALID_ARGUMENTS`` when the handler cannot be called with these.

    """
    if not callable(handler):
        raise invalid(f"Handler of {what} must be callable, not {type(handler).__name__}")
    is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004 - the method itself is looked at
    )
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        return (lambda payload, _metadata, _context: handler(payload)), is_async
    count, keywords = _read_parameters(parameters, what)

    if not keywords:
        return _bind_positional(handler, count), is_async

    def bound(payload: Any, metadata: Any, context: CallContext) -> Any:
        given = {"metadata": metadata, "context": context}
        named = {name: given[name] for name in keywords}
        return handler(*(payload, metadata, context)[:count], **named)

    return bound, is_async


def _bind_positional(handler: Callable[..., Any], count: int) -> Bound:
    if count == 1:
        return lambda payload, _metadata, _context: handler(payload)
    if count == 2:
        return lambda payload, metadata, _context: handler(payload, metadata)
    return handler


def _read_parameters(parameters: list[inspect.Parameter], what: str) -> tuple[int, list[str]]:
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    required = sum(p.default is p.empty for p in positional)
    if required > 3 or not (positional or takes_any):
        wanted = "(payload), (payload, metadata) or (payload, metadata, context)"
        raise invalid(f"Handler of {what} must take {wanted}")
    count = max(1, required)
    for name in ("metadata", "context")[count - 1 :]:
        if len(positional) <= count or positional[count].name != name:
            break
        count += 1
    keywords = []
    for parameter in parameters:
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        if parameter.name in ("metadata", "context"):
            keywords.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise invalid(
                f"Handler of {what} requires {parameter.name}, which the SDK does not pass"
            )
    return count, keywords


class Runner:
    """Runs invocations and answers them; its methods run in the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        pool: ThreadPool,
        post: Callable[[Callable[[], None]], None],
        now: Callable[[], float],
        telemetry: Telemetry | None = None,
    ) -> None:
        self._telemetry = telemetry
        self._loop = loop
        self._session = session
        self._pool = pool
        self._post = post
        self._now = now
        self._failures = FailureLog(now)
        self._runs: dict[Invocation, _Run] = {}
        self._streams: set[asyncio.Task[None]] = set()
        """Responses that are being written."""
        self._was_full = False
        """Whether calls waited for a thread when that was last measured."""
        if telemetry is not None:
            telemetry.load = self.load

    def run(self, invocation: Invocation, function: Function) -> None:
        """Start a handler; its outcome answers the invocation."""
        run = _Run(invocation, CallContext(invocation, self._now, self._send_progress))
        self._runs[invocation] = run
        if function.is_async:
            given = (invocation.payload, invocation.metadata, run.context)
            self._start_task(run, lambda: function.call(*given))
            return
        try:
            self._pool.submit(lambda: self._run_in_thread(run, function))
        except RuntimeError as error:  # The system has no threads left.
            self._end(run, None, describe_raised(error))

    def load(self) -> list[Gauge]:
        """Measure the threads, the calls that wait for one, and the handlers that are late."""
        busy, busy_max, waiting = self._pool.load()
        late: dict[str, float] = {}
        now = self._now()
        for invocation, run in self._runs.items():
            if run.started and invocation.deadline is not None and invocation.deadline < now:
                seconds = (now - invocation.deadline) / 1000
                late[invocation.function_id] = max(seconds, late.get(invocation.function_id, 0))
        worst = sorted(late.items(), key=lambda entry: -entry[1])[:LATE_FUNCTIONS_MAX]
        self._warn(busy >= busy_max and waiting > 0, busy_max, waiting, worst)
        return [
            Gauge("engine.handlers.waiting", "1", waiting),
            Gauge("engine.handlers.threads.busy", "1", busy),
            Gauge("engine.handlers.threads.max", "1", busy_max),
            *(Gauge("engine.handlers.overdue", "s", late, name) for name, late in worst),
        ]

    def _warn(
        self, is_full: bool, threads: int, waiting: int, worst: list[tuple[str, float]]
    ) -> None:
        """Log once that calls wait for a thread, until none does."""
        if is_full and not self._was_full:
            late = "".join(
                f"; {function_id} runs {seconds:.0f} s past its deadline"
                for function_id, seconds in worst[:1]
            )
            text = "[engine] All %d threads are busy, so %d calls wait%s"
            log.warning(text, threads, waiting, late)
        self._was_full = is_full

    def abort(self, invocation: Invocation, reason: str | None) -> None:
        """Cancel an invocation: set its context's flag, cancel its task."""
        if (run := self._runs.get(invocation)) is not None:
            run.context.cancel(reason)
            if run.task is not None:
                run.task.cancel()

    def connection_lost(self) -> None:
        """Set the cancelled flag of every invocation; coroutines run on, to finish their work."""
        for run in list(self._runs.values()):
            run.context.cancel("connection lost")

    async def abort_all(self, seconds: float) -> None:
        """Cancel every invocation at shutdown; wait up to ``seconds`` for those on the loop."""
        for invocation in list(self._runs):
            self.abort(invocation, "worker shuts down")
        if tasks := [run.task for run in self._runs.values() if run.task is not None]:
            await asyncio.wait(tasks, timeout=seconds)

    def _start_task(self, run: _Run, start: Callable[[], Awaitable[Any]]) -> None:
        run.task = self._loop.create_task(self._await(run, start))
        run.task.add_done_callback(lambda _: self._end_unstarted(run))
        if run.context.cancelled:
            run.task.cancel()

    async def _await(self, run: _Run, start: Callable[[], Awaitable[Any]]) -> None:
        CURRENT.set(run.context)
        run.started = True
        self._begin_span(run)
        result, error = None, None
        try:
            value = await start()
            streamed = streamed_response(run.invocation.payload, value)
            if streamed is not None:
                self._stream(run, streamed)
            else:
                result = _encode_result(run.invocation, value)
        except asyncio.CancelledError:
            error = CANCELLED
        except BaseException as raised:
            error = self._describe(run, raised)
        finish_output()
        self._end(run, result, error)

    def _stream(self, run: _Run, streamed: Streamed) -> None:
        """Write a response on the loop; the invocation is answered meanwhile."""
        task = self._loop.create_task(send_stream(streamed, lambda: _left(run)))
        self._streams.add(task)
        task.add_done_callback(self._streams.discard)

    def _stream_in_thread(self, run: _Run, streamed: Streamed) -> None:
        finish_output()
        if run.span is not None:
            run.span.stop()
        self._post(lambda: self._end(run, None, None))
        send_in_thread(streamed, lambda: _left(run))

    def _run_in_thread(self, run: _Run, function: Function) -> None:
        contextvars.copy_context().run(self._run_sync, run, function)

    def _run_sync(self, run: _Run, function: Function) -> None:
        CURRENT.set(run.context)
        run.started = True
        invocation = run.invocation
        self._begin_span(run)
        result, error = None, None
        try:
            if run.context.cancelled:
                error = CANCELLED
            else:
                value = function.call(invocation.payload, invocation.metadata, run.context)
                if inspect.isawaitable(value):
                    # An ordinary function that returns a coroutine, such as a lambda.
                    self._post(lambda: self._start_task(run, lambda: value))
                    return
                streamed = streamed_response(invocation.payload, value)
                if streamed is None:
                    result = _encode_result(invocation, value)
                elif streamed.is_async:
                    self._post(lambda: self._stream(run, streamed))
                else:
                    self._stream_in_thread(run, streamed)
                    return
        except BaseException as raised:
            error = self._describe(run, raised)
        finish_output()
        if run.span is not None:
            run.span.stop()  # Here, because the loop may be late.
        self._post(lambda: self._end(run, result, error))

    def _describe(self, run: _Run, raised: BaseException) -> ErrorBody:
        """Convert an exception; log it here, where output belongs to the call."""
        error = describe_raised(raised)
        if not run.context.cancelled:
            self._failures.note(run.invocation.function_id, error)
        return error

    def _begin_span(self, run: _Run) -> None:
        """Start the span, unless the sync part of the handler started it."""
        if self._telemetry is not None and run.span is None:
            run.span = self._telemetry.begin(run.invocation)

    def _end(self, run: _Run, result: str | None, error: ErrorBody | None) -> None:
        if self._runs.pop(run.invocation, None) is None:
            return
        if run.span is not None and self._telemetry is not None:
            self._telemetry.end(run.span, CANCELLED if run.context.cancelled else error)
        run.context.end()
        encoded = None if error is None else encode_error(error)
        self._session.finish(run.invocation, result, encoded)

    def _end_unstarted(self, run: _Run) -> None:
        if run.invocation in self._runs:  # Cancelled before its first step.
            self._end(run, None, CANCELLED)

    def _send_progress(self, invocation: Invocation, data: Any) -> None:
        text = encode(data, f"Progress of {invocation.function_id}")
        self._post(lambda: self._session.progress(invocation, text))


class _Run:
    """One running invocation, until it is answered."""

    __slots__ = ("context", "invocation", "span", "started", "task")

    def __init__(self, invocation: Invocation, context: CallContext) -> None:
        self.invocation = invocation
        self.context = context
        self.task: asyncio.Task[None] | None = None
        self.span: Span | None = None
        self.started = False
        """Whether its handler has a thread, or its task runs."""


def _left(run: _Run) -> None:
    run.context.cancel("the client has left")


def _encode_result(invocation: Invocation, value: Any) -> str | None:
    return None if value is None else encode(value, f"Result of {invocation.function_id}")


class FailureLog:
    """
    Logs the tracebacks of one worker's handlers that failed unexpectedly; thread-safe.

    The error travels to the caller, which may be far away or wait for no result, so the worker's
    own log shows it as well, line by line. A handler may fail thousands of times per second: the
    number of tracebacks is bounded, and a later line says how many were left out.
    """

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
