"""
The thread that owns a worker's line: one event loop, and everything that happens on it.

It is no daemon: a script whose main thread has ended stays alive until ``shutdown()``.
Other threads hand it work with `post`; inside, nothing needs a lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from ._calls import Call
from ._codec import Invocation, TriggerInstance
from ._errors import ErrorBody
from ._fast import new_loop
from ._handlers import Runner
from ._reconnect import ConnectionState, Keeper
from ._registrations import Function, TriggerType
from ._requests import ReconnectOptions
from ._session import SHUTDOWN, Session
from ._telemetry import Telemetry
from ._threads import LoopExecutor, Mailbox, ThreadPool, Work
from ._transport import LEAVE_MS, Dial
from ._trigger_types import Providers

THREADS_LOOKUP_MAX: Final = 8
"""Threads for name look-ups and for what coroutines hand to ``asyncio.to_thread``."""


log = logging.getLogger("engine_sdk")


def now_ms() -> float:
    """Milliseconds of a clock that never goes back."""
    return time.monotonic() * 1000


class LineThread(threading.Thread):
    """Runs a session on its own loop; it is the session's host."""

    def __init__(
        self,
        announcement: str,
        dial: Dial,
        address: str,
        reconnect: ReconnectOptions,
        pool: ThreadPool,
        service: str = "",
        telemetry_dial: Dial | None = None,
    ) -> None:
        # At a prompt nobody could end the program otherwise.
        super().__init__(name="engine-sdk", daemon=hasattr(sys, "ps1"))
        self.session = Session(announcement, self, now_ms)
        self.settled = threading.Event()
        """Set once the first line is open, or there will be none."""
        self.state: ConnectionState = "connecting"
        self.listeners: list[Callable[[ConnectionState], object]] = []
        self._pool = pool
        self._lookups = ThreadPool(THREADS_LOOKUP_MAX)
        self._loop = new_loop()
        self._loop.set_default_executor(LoopExecutor(self._lookups))
        self.telemetry: Telemetry | None = None
        """What the worker tells about itself; None: nothing."""
        if telemetry_dial is not None:
            self.telemetry = Telemetry(
                service, telemetry_dial, self.post, lambda: self.session.worker_id
            )
        self._telling: asyncio.Task[None] | None = None
        self._runner = Runner(self._loop, self.session, pool, self.post, now_ms, self.telemetry)
        self._providers = Providers(self._loop, self.session, pool, self.post)
        self._keeper = Keeper(
            self.session,
            dial,
            address,
            reconnect,
            self._set_state,
            asyncio.sleep,
            random.random,
            *([] if self.telemetry is None else [self.telemetry.last_words]),
        )
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self.ended: ErrorBody | None = None
        """What calls end with, once the worker leaves."""
        self._mailbox = Mailbox(self._loop, emptied=self._keeper.flush)

    def post(self, work: Work) -> None:
        """Do something in this thread: now if this is it, else in the order of asking."""
        self._mailbox.put(work)

    def start_call(self, call: Call) -> None:
        """Make a call, unless the worker leaves."""
        if self.ended is not None:
            call.end(None, self.ended)
        else:
            self.session.start_call(call)

    def stop(self) -> None:
        """Ask the thread to end; takes no lock, so that a signal handler may call it."""
        with contextlib.suppress(RuntimeError):  # It has ended already.
            self._loop.call_soon_threadsafe(self._leave, SHUTDOWN)

    def run(self) -> None:
        """Keep the worker on its line until told to stop."""
        asyncio.set_event_loop(self._loop)
        self._mailbox.thread = self.ident
        try:
            self._loop.run_until_complete(self._stay())
        except BaseException:
            log.exception("[engine] The worker ended by a bug of the SDK")
        finally:
            self._close()

    async def _stay(self) -> None:
        await self._keeper.run()
        if self.state == "failed":
            message = self._keeper.failure or "The worker has given up"
            self._leave({"code": "engine_unreachable", "message": message})
        await self._runner.abort_all(LEAVE_MS / 1000)
        await self._providers.end(LEAVE_MS / 1000)
        if self._telling is not None:
            await asyncio.wait({self._telling}, timeout=2 * LEAVE_MS / 1000)

    def _leave(self, error: ErrorBody) -> None:
        if self.ended is None:
            self.ended = error
            self.session.end_calls(error)
            if self.telemetry is not None:
                self.telemetry.stop()
            self._keeper.stop()

    def _close(self) -> None:
        if self.ended is None:
            self.ended = SHUTDOWN
        self._mailbox.close()
        self.session.closed()
        self.session.end_calls(self.ended)
        self._pool.close()
        self._lookups.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        # One more turn: what was posted and what was cancelled comes to its end.
        self._loop.run_until_complete(asyncio.sleep(0.01))
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=LEAVE_MS / 1000))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
        self.settled.set()

    def _set_state(self, state: ConnectionState) -> None:
        self.state = state
        if state == "connected" and self.telemetry is not None and self._telling is None:
            self._telling = self._loop.create_task(self.telemetry.run())
        if state in ("connected", "failed", "disconnected"):
            self.settled.set()
        for listener in list(self.listeners):
            try:
                listener(state)
            except Exception:
                log.exception("[engine] A listener for the connection state failed")

    # What the session needs done.

    def output_ready(self) -> None:
        """Write what the session has."""
        self._keeper.output_ready()

    def deadline_set(self, at: float) -> None:
        """Look for calls that are over at this time: one timer, for the earliest."""
        if self._timer is not None and self._timer_at <= at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_later(max(0.0, at - now_ms()) / 1000, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self.session.expire()

    def run_function(self, invocation: Invocation, function: Function) -> None:
        """Run a function."""
        self._runner.run(invocation, function)

    def abort(self, invocation: Invocation, reason: str | None) -> None:
        """Tell a handler that nobody wants its result."""
        self._runner.abort(invocation, reason)

    def provide(self, trigger: TriggerInstance, offer: TriggerType, line: int) -> None:
        """Start a trigger."""
        self._providers.provide(trigger, offer, line)

    def withdraw(self, trigger_id: str) -> None:
        """End a trigger, if it was started."""
        self._providers.withdraw(trigger_id)

    def withdraw_all(self, offer: TriggerType) -> None:
        """End all triggers of a type."""
        self._providers.withdraw_all(offer)

    def line_lost(self) -> None:
        """Tell handlers that nobody waits, and end all triggers: a new line brings them anew."""
        self._runner.line_lost()
        self._providers.withdraw_all()

    def refused(self, reason: str) -> None:
        """End: the engine does not want this worker."""
        self._keeper.refuse(reason)

    def join_or_warn(self, seconds: float) -> None:
        """Wait for the end of the thread, unless this is it."""
        if threading.current_thread() is self:
            return
        self.join(seconds)
        if self.is_alive():
            log.warning("[engine] A handler blocks the worker's loop; it ends when that returns")
