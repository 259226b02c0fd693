"""
Runs the handlers of trigger types: tells a provider what to watch, and the engine how it went.

Every start that went well is paired with one stop. What concerns one trigger happens in
order, also when its handlers take their time; different triggers do not wait for each other.
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
class _Watched:
    offer: TriggerType
    wanted: bool = True
    last: asyncio.Task[None] | None = None
    """The step that whatever comes next has to wait for."""
    taken: bool = False
    """The provider took it; it is asked to stop only then."""


class Providers:
    """The triggers of this worker's types; belongs to the thread of the loop."""

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
        self._watched: dict[str, _Watched] = {}
        self._steps: set[asyncio.Task[None]] = set()
        self._ending: dict[str, asyncio.Task[None]] = {}
        """By trigger id, the stop that still runs; a trigger that comes again waits for it."""

    def provide(self, trigger: TriggerInstance, offer: TriggerType, line: int) -> None:
        """Start a trigger, in place of one with the same id, and say how that went."""
        self.withdraw(trigger.id)
        watched = _Watched(offer, last=self._ending.get(trigger.id))
        self._watched[trigger.id] = watched

        async def start() -> None:
            error: ErrorBody | None = None
            if watched.wanted:
                try:
                    await self._call(offer.start, trigger)
                    watched.taken = True
                except Exception as raised:
                    message = describe_raised(raised)["message"]
                    error = {"code": "trigger_registration_failed", "message": message}
            if error is not None and self._watched.get(trigger.id) is watched:
                del self._watched[trigger.id]
            self._session.answer_trigger(trigger, error, line)

        self._append(watched, start)

    def withdraw(self, trigger_id: str) -> None:
        """End a trigger; one that is not watched is ignored."""
        watched = self._watched.pop(trigger_id, None)
        if watched is None:
            return
        watched.wanted = False
        instance = TriggerInstance(trigger_id, watched.offer.id)

        async def stop() -> None:
            if not watched.taken:
                return
            try:
                await self._call(watched.offer.stop, instance)
            except Exception:
                log.exception("[engine] Could not end trigger %s (%s)", trigger_id, instance)

        step = self._append(watched, stop)
        self._ending[trigger_id] = step

        def forget(_: asyncio.Task[None]) -> None:
            if self._ending.get(trigger_id) is step:
                del self._ending[trigger_id]

        step.add_done_callback(forget)

    def withdraw_all(self, offer: TriggerType | None = None) -> None:
        """End all triggers, or those of one type."""
        for trigger_id, watched in list(self._watched.items()):
            if offer is None or watched.offer is offer:
                self.withdraw(trigger_id)

    async def end(self, seconds: float) -> None:
        """End all triggers, and wait a little for their providers."""
        self.withdraw_all()
        if self._steps:
            await asyncio.wait(list(self._steps), timeout=seconds)

    def _append(self, watched: _Watched, step: Callable[[], Any]) -> asyncio.Task[None]:
        before = watched.last

        async def run() -> None:
            if before is not None:
                await asyncio.wait([before])
            await step()

        task = self._loop.create_task(run())
        watched.last = task
        self._steps.add(task)
        task.add_done_callback(self._steps.discard)
        return task

    async def _call(self, handler: Callable[[Any], Any], trigger: TriggerInstance) -> None:
        """Run a handler; a thread is used unless it is a coroutine function."""
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
    """Await user code; a SystemExit of it must not end the loop."""
    try:
        await work
    except (SystemExit, KeyboardInterrupt) as raised:
        raise RuntimeError(describe_raised(raised)["message"]) from raised


def _settle(ended: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if ended.done():
        return  # The worker has left meanwhile.
    if error is None:
        ended.set_result(value)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        ended.set_exception(error)
    else:  # A future cannot carry these.
        ended.set_exception(RuntimeError(describe_raised(error)["message"]))
