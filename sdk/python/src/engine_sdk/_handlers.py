"""
Runs handlers: coroutine functions on the loop, all others in threads.

Whatever a handler raises, a SystemExit too, ends its own run and nothing else.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from ._codec import encode
from ._context import CURRENT, CallContext
from ._errors import ErrorBody, describe_raised, invalid
from ._messages import Invocation, encode_error
from ._offers import Function
from ._output_marks import finish_output
from ._session import CANCELLED, Session
from ._telemetry import Span, Telemetry
from ._threads import ThreadPool

Bound = Callable[[Any, Any, CallContext], Any]
"""A handler that takes all three arguments, whichever the user's takes."""


def bind(handler: Callable[..., Any], what: str) -> tuple[Bound, bool]:
    """
    Look once at what a handler takes, and whether it is a coroutine function.

    A handler takes the payload, then, if it has room, ``metadata`` and ``context``. An
    argument with a default is filled only if it has that name, so that
    ``lambda payload, shop=shop: …`` keeps its shop.

    Raises:
        EngineError: ``INVALID_ARGUMENTS`` when it cannot be called with these.

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

    def bound(payload: Any, metadata: Any, context: CallContext) -> Any:
        given = {"metadata": metadata, "context": context}
        named = {name: given[name] for name in keywords}
        return handler(*(payload, metadata, context)[:count], **named)

    return bound, is_async


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
            raise invalid(f"Handler of {what} requires {parameter.name}, which nobody gives it")
    return count, keywords


class Runner:
    """Runs invocations and answers them; its methods belong to the thread of the loop."""

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
        self._contexts: dict[Invocation, CallContext] = {}
        self._tasks: dict[Invocation, asyncio.Task[None]] = {}
        self._spans: dict[Invocation, Span] = {}

    def run(self, invocation: Invocation, function: Function) -> None:
        """Start a handler; its end answers the invocation."""
        context = CallContext(invocation, self._now, self._send_progress)
        self._contexts[invocation] = context
        if function.is_async:
            self._start_task(invocation, context, lambda: self._call(invocation, function))
            return
        try:
            self._pool.submit(lambda: self._run_in_thread(invocation, context, function))
        except RuntimeError as error:  # The system has no threads left.
            self._end(invocation, None, describe_raised(error))

    def abort(self, invocation: Invocation, reason: str | None) -> None:
        """Tell a handler that nobody wants its result."""
        if (context := self._contexts.get(invocation)) is not None:
            context.cancel(reason)
        if (task := self._tasks.get(invocation)) is not None:
            task.cancel()

    def line_lost(self) -> None:
        """Tell every handler that nobody waits; coroutines go on, for they may be half-way."""
        for context in list(self._contexts.values()):
            context.cancel("line lost")

    async def abort_all(self, seconds: float) -> None:
        """Tell every handler that the worker leaves; wait a little for those on the loop."""
        for invocation in list(self._contexts):
            self.abort(invocation, "worker shuts down")
        if tasks := list(self._tasks.values()):
            await asyncio.wait(tasks, timeout=seconds)

    def _call(self, invocation: Invocation, function: Function) -> Any:
        context = self._contexts[invocation]
        return function.call(invocation.payload, invocation.metadata, context)

    def _start_task(
        self, invocation: Invocation, context: CallContext, start: Callable[[], Awaitable[Any]]
    ) -> None:
        task = self._loop.create_task(self._await(invocation, context, start))
        task.add_done_callback(lambda _: self._end_unstarted(invocation))
        self._tasks[invocation] = task
        if context.cancelled:
            task.cancel()

    async def _await(
        self, invocation: Invocation, context: CallContext, start: Callable[[], Awaitable[Any]]
    ) -> None:
        CURRENT.set(context)
        self._begin_span(invocation)
        result, error = None, None
        try:
            result = _encode_result(invocation, await start())
        except asyncio.CancelledError:
            error = CANCELLED
        except BaseException as raised:
            error = describe_raised(raised)
        finish_output()
        self._end(invocation, result, error)

    def _run_in_thread(
        self, invocation: Invocation, context: CallContext, function: Function
    ) -> None:
        contextvars.copy_context().run(self._run_sync, invocation, context, function)

    def _run_sync(self, invocation: Invocation, context: CallContext, function: Function) -> None:
        CURRENT.set(context)
        span = self._begin_span(invocation)
        result, error = None, None
        try:
            if context.cancelled:
                error = CANCELLED
            else:
                value = function.call(invocation.payload, invocation.metadata, context)
                if inspect.isawaitable(value):
                    # An ordinary function that hands out a coroutine, such as a lambda.
                    self._post(lambda: self._start_task(invocation, context, lambda: value))
                    return
                result = _encode_result(invocation, value)
        except BaseException as raised:
            error = describe_raised(raised)
        finish_output()
        if span is not None:
            span.stop()  # Here, since the loop may be late.
        self._post(lambda: self._end(invocation, result, error))

    def _begin_span(self, invocation: Invocation) -> Span | None:
        """Note the beginning of a run; one that goes on as a coroutine has begun already."""
        if self._telemetry is None or invocation in self._spans:
            return None
        span = self._telemetry.begin(invocation)
        if span is not None:
            self._spans[invocation] = span
        return span

    def _end(self, invocation: Invocation, result: str | None, error: ErrorBody | None) -> None:
        context = self._contexts.pop(invocation, None)
        span = self._spans.pop(invocation, None)
        if span is not None and self._telemetry is not None:
            cancelled = context is not None and context.cancelled
            self._telemetry.end(span, CANCELLED if cancelled else error)
        if context is not None:
            context.end()
        self._tasks.pop(invocation, None)
        told = None if error is None else encode_error(error)
        self._session.finish(invocation, result, told)

    def _end_unstarted(self, invocation: Invocation) -> None:
        if invocation in self._contexts:  # Cancelled before its first step.
            self._end(invocation, None, CANCELLED)

    def _send_progress(self, invocation: Invocation, data: Any) -> None:
        text = encode(data, f"Progress of {invocation.function_id}")
        self._post(lambda: self._session.progress(invocation, text))


def _encode_result(invocation: Invocation, value: Any) -> str | None:
    return None if value is None else encode(value, f"Result of {invocation.function_id}")
