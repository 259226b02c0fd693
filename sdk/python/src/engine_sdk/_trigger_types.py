"""
Runs the handlers of trigger types, in order.

What happens to one type's triggers happens one after the other: a trigger that ends while
its start is still on its way must not be started after its end.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from ._errors import ErrorBody
from ._messages import TriggerInstance
from ._offers import TriggerType
from ._session import Session
from ._threads import ThreadPool

log = logging.getLogger("engine_sdk")


class Providers:
    """Hands triggers to the types of this worker; belongs to the thread of the loop."""

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
        self._last: dict[TriggerType, asyncio.Task[None]] = {}

    def provide(self, trigger: TriggerInstance, offer: TriggerType, line: int) -> None:
        """Start a trigger and say how that went."""

        async def start() -> None:
            error: ErrorBody | None = None
            try:
                await self._call(offer.start, trigger)
            except asyncio.CancelledError:
                raise
            except BaseException as raised:
                message = getattr(raised, "message", None) or str(raised) or type(raised).__name__
                error = {"code": "trigger_registration_failed", "message": str(message)}
            self._session.answer_trigger(trigger, error, line)

        self._append(offer, start)

    def withdraw(self, trigger: TriggerInstance, offer: TriggerType) -> None:
        """End a trigger."""

        async def stop() -> None:
            try:
                await self._call(offer.stop, trigger)
            except asyncio.CancelledError:
                raise
            except BaseException:
                log.exception("[engine] Could not end trigger %s (%s)", trigger.id, offer.id)

        self._append(offer, stop)

    def cancel_all(self) -> None:
        """Stop whatever is on its way."""
        for task in list(self._last.values()):
            task.cancel()

    def _append(self, offer: TriggerType, step: Callable[[], Any]) -> None:
        before = self._last.get(offer)

        async def run() -> None:
            if before is not None:
                await asyncio.wait([before])
            await step()

        task = self._loop.create_task(run())
        self._last[offer] = task
        task.add_done_callback(lambda done: self._forget(offer, done))

    def _forget(self, offer: TriggerType, done: asyncio.Task[None]) -> None:
        if self._last.get(offer) is done:
            del self._last[offer]

    async def _call(self, handler: Callable[[Any], Any], trigger: TriggerInstance) -> None:
        if inspect.iscoroutinefunction(handler):
            await handler(trigger)
            return
        ended: asyncio.Future[Any] = self._loop.create_future()

        def job() -> None:
            try:
                value, error = handler(trigger), None
            except BaseException as raised:
                value, error = None, raised
            self._post(lambda: _settle(ended, value, error))

        self._pool.submit(job)
        value = await ended
        if inspect.isawaitable(value):
            await value


def _settle(ended: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if ended.done():
        return  # The worker has left meanwhile.
    if error is None:
        ended.set_result(value)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        ended.set_exception(error)
    else:  # A future cannot carry these.
        ended.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
