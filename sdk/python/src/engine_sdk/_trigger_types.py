"""
Runs the handlers of the worker's trigger types and answers the engine.

Every successful start is paired with one stop. Steps of one trigger run in order, even if its
handlers are slow; different triggers do not wait for each other.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._codec import TriggerInstance
from ._errors import ErrorBody, describe_raised
from ._registrations import TriggerType
from ._session import Session
from ._threads import ThreadPool

log = logging.getLogger("engine_sdk")


@dataclass(eq=False)
class _Started:
    trigger_type: TriggerType
    is_desired: bool = True
    last: asyncio.Task[None] | None = None
    """The last step; the next one waits for it."""
    is_live: bool = False
    """The start handler succeeded, so that the stop handler has to run."""


class ProvidedTriggers:
    """The triggers of the worker's types; its methods run in the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        pool: ThreadPool,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._loop = loop
        self._session = session
        self._pool = pool
        self._post = post
        self._started: dict[str, _Started] = {}
        self._steps: set[asyncio.Task[None]] = set()
        self._ending: dict[str, asyncio.Task[None]] = {}
        """By trigger id, the stop that still runs; a new start of the trigger waits for it."""

    def start(self, trigger: TriggerInstance, trigger_type: TriggerType, connection: int) -> None:
        """Start a trigger, replacing one with the same id, and answer the engine."""
        self.stop(trigger.id)
        started = _Started(trigger_type, last=self._ending.get(trigger.id))
        self._started[trigger.id] = started

        async def run_start() -> None:
            error: ErrorBody | None = None
            if started.is_desired:
                try:
                    await self._call(trigger_type.start, trigger)
                    started.is_live = True
                except Exception as raised:
                    message = describe_raised(raised)["message"]
                    error = {"code": "trigger_registration_failed", "message": message}
            if error is not None and self._started.get(trigger.id) is started:
                del self._started[trigger.id]
            self._session.answer_trigger(trigger, error, connection)

        self._append(started, run_start)

    def stop(self, trigger_id: str) -> None:
        """Stop a trigger; an unknown one is ignored."""
        started = self._started.pop(trigger_id, None)
        if started is None:
            return
        started.is_desired = False
        instance = TriggerInstance(trigger_id, started.trigger_type.id)

        async def run_stop() -> None:
            if not started.is_live:
                return
            try:
                await self._call(started.trigger_type.stop, instance)
            except Exception:
                log.exception("[engine] Could not end trigger %s (%s)", trigger_id, instance)

        step = self._append(started, run_stop)
        self._ending[trigger_id] = step

        def forget(_: asyncio.Task[None]) -> None:
            if self._ending.get(trigger_id) is step:
                del self._ending[trigger_id]

        step.add_done_callback(forget)

    def stop_all(self, trigger_type: TriggerType | None = None) -> None:
        """Stop all triggers, or those of one type."""
        for trigger_id, started in list(self._started.items()):
            if trigger_type is None or started.trigger_type is trigger_type:
                self.stop(trigger_id)

    async def end(self, seconds: float) -> None:
        """Stop all triggers; wait up to ``seconds`` for their handlers."""
        self.stop_all()
        if self._steps:
            await asyncio.wait(list(self._steps), timeout=seconds)

    def _append(self, started: _Started, step: Callable[[], Any]) -> asyncio.Task[None]:
        before = started.last

        async def run() -> None:
            if before is not None:
                await asyncio.wait([before])
            await step()

        task = self._loop.create_task(run())
        started.last = task
        self._steps.add(task)
        task.add_done_callback(self._steps.discard)
        return task

    async def _call(self, handler: Callable[[Any], Any], trigger: TriggerInstance) -> None:
        """Run a handler: a coroutine function on the loop, any other in a thread."""
        if inspect.iscoroutinefunction(handler):
            await _run_guarded(handler(trigger))
            return
        ended: asyncio.Future[Any] = self._loop.create_future()

        def job() -> None:
            value, error = None, None
            try:
                value = handler(trigger)
            except BaseException as raised:
                error = raised
            self._post(lambda: _settle(ended, value, error))

        self._pool.submit(job)
        value = await ended
        if inspect.isawaitable(value):
            await _run_guarded(value)


async def _run_guarded(work: Any) -> None:
    """Await user code; its SystemExit must not end the loop."""
    try:
        await work
    except (SystemExit, KeyboardInterrupt) as raised:
        raise RuntimeError(describe_raised(raised)["message"]) from raised


def _settle(ended: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if ended.done():
        return  # The worker has shut down meanwhile.
    if error is None:
        ended.set_result(value)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        ended.set_exception(error)
    else:  # A future cannot carry these.
        ended.set_exception(RuntimeError(describe_raised(error)["message"]))
