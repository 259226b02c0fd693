"""
The thread of a worker: one event loop that runs its session, connection, timers and coroutines.

It is not a daemon: a script whose main thread has ended stays alive until ``shutdown()``.
Other threads pass it work with `post`, so nothing here needs a lock.
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
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from ._calls import Call
from ._channels import ChannelHost
from ._codec import Invocation, TriggerInstance
from ._direct import DirectCalls, LendingLoop
from ._errors import ErrorBody, invalid
from ._fast import new_loop
from ._handlers import Runner
from ._reconnect import ConnectionState, Reconnector
from ._registrations import Function, TriggerType
from ._requests import ReconnectOptions
from ._session import SHUTDOWN, UNREACHABLE, Session
from ._telemetry import Telemetry
from ._threads import LoopExecutor, Mailbox, PoolThread, ThreadPool, Work
from ._transport import LEAVE_MS, Dial
from ._trigger_types import ProvidedTriggers

THREADS_LOOKUP_MAX: Final = 8
"""Threads for name lookups and for ``asyncio.to_thread`` in coroutines."""


log = logging.getLogger("engine_sdk")


def now_ms() -> float:
    """Milliseconds of a monotonic clock."""
    return time.monotonic() * 1000


def may_block(what: str, instead: str) -> AbstractContextManager[None]:
    """
    Return a context in which this thread may wait; one of a pool then does not count as busy.

    Raises:
        EngineError: ``INVALID_ARGUMENTS`` in the thread of a worker.

    """
    here = threading.current_thread()
    if isinstance(here, WorkerThread):
        raise invalid(
            f"{what} would block the loop it waits for; "
            f"write 'await worker.{instead}' in a coroutine"
        )
    return here.pool.waiting() if isinstance(here, PoolThread) else nullcontext()


class WorkerThread(threading.Thread):
    """Runs a session on a loop of its own, as the session's `Host`."""

    def __init__(
        self,
        announcement: str,
        dial: Dial,
        address: str,
        reconnect: ReconnectOptions,
        pool: ThreadPool,
        service: str = "",
        telemetry_dial: Dial | None = None,
        when_disconnected: str = "wait",
        url: str = "",
    ) -> None:
        # At a prompt the program could not exit otherwise.
        super().__init__(name="engine-sdk", daemon=hasattr(sys, "ps1"))
        self.session = Session(announcement, self, now_ms)
        self.settled = threading.Event()
        """Set once the first connection is open, or dialling was given up."""
        self.state: ConnectionState = "connecting"
        self.listeners: list[Callable[[ConnectionState], object]] = []
        self._pool = pool
        self.fails_fast = when_disconnected == "fail"
        """Whether calls fail while there is no connection."""
        self._lookups = ThreadPool(THREADS_LOOKUP_MAX)
        self._loop = new_loop(LendingLoop)
        self._loop.set_default_executor(LoopExecutor(self._lookups))
        self.telemetry: Telemetry | None = None
        """None: telemetry is off."""
        if telemetry_dial is not None:
            self.telemetry = Telemetry(
                service, telemetry_dial, self.post, lambda: self.session.worker_id
            )
        self._telemetry_task: asyncio.Task[None] | None = None
        self.channels = ChannelHost(url, self._loop)
        """The ends of channels."""
        self.session.revive = self.channels.revive
        self._runner = Runner(self._loop, self.session, pool, self.post, now_ms, self.telemetry)
        self._provided = ProvidedTriggers(self._loop, self.session, pool, self.post)
        self._reconnector = Reconnector(
            self.session,
            dial,
            address,
            reconnect,
            self._set_state,
            random.random,
            *([] if self.telemetry is None else [self.telemetry.final_frames]),
        )
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self.ended: ErrorBody | None = None
        """The error of calls, once the worker shuts down."""
        self._mailbox = Mailbox(self._loop, emptied=self._reconnector.flush)
        self.direct: DirectCalls | None = None
        """Calls without the loop; None: it cannot lend its connection."""
        if isinstance(self._loop, LendingLoop):
            self.direct = self._loop.selector.calls = DirectCalls(
                self._loop, self.session, self._reconnector, self._mailbox, now_ms
            )

    def post(self, work: Work) -> None:
        """Run ``work`` in this thread: now if called there, else in the order of arrival."""
        self._mailbox.put(work)

    def start_call(self, call: Call) -> None:
        """Start a call, unless the worker shuts down."""
        if self.ended is not None:
            call.end(None, self.ended)
        else:
            self.session.start_call(call)

    def stop(self) -> None:
        """Begin to shut down; takes no lock, so that a signal handler may call it."""
        with contextlib.suppress(RuntimeError):  # It has ended already.
            self._loop.call_soon_threadsafe(self._begin_shutdown, SHUTDOWN)

    def run(self) -> None:
        """Keep the worker connected until `stop`."""
        asyncio.set_event_loop(self._loop)
        self._mailbox.thread = self.ident
        self.channels.begin()
        try:
            self._loop.run_until_complete(self._main())
        except BaseException:
            log.exception("[engine] The worker ended because of a bug in the SDK")
        finally:
            self._close()

    async def _main(self) -> None:
        await self._reconnector.run()
        if self.state == "failed":
            message = self._reconnector.failure or "The worker has given up"
            self._begin_shutdown({**UNREACHABLE, "message": message})
        await self._runner.abort_all(LEAVE_MS / 1000)
        await self._provided.end(LEAVE_MS / 1000)
        if self._telemetry_task is not None:
            await asyncio.wait({self._telemetry_task}, timeout=2 * LEAVE_MS / 1000)

    def _begin_shutdown(self, error: ErrorBody) -> None:
        if self.ended is None:
            self.ended = error
            self.session.end_calls(error)
            self.channels.close()
            if self.telemetry is not None:
                self.telemetry.stop()
            self._reconnector.stop()

    def _close(self) -> None:
        if self.ended is None:
            self.ended = SHUTDOWN
        self._mailbox.close()
        self.session.closed("the worker has ended")
        self.session.end_calls(self.ended)
        self._pool.close()
        self._lookups.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        # One more iteration, for posted work and cancelled tasks.
        self._loop.run_until_complete(asyncio.sleep(0.01))
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=LEAVE_MS / 1000))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
        self.settled.set()

    def _set_state(self, state: ConnectionState) -> None:
        self.state = state
        if state == "reconnecting" and self.fails_fast:
            self.session.refuse_waiting()
        if state == "connected" and self.telemetry is not None and self._telemetry_task is None:
            self._telemetry_task = self._loop.create_task(self.telemetry.run())
        if state in ("connected", "failed", "disconnected"):
            self.settled.set()
        for listener in list(self.listeners):
            try:
                listener(state)
            except Exception:
                log.exception("[engine] A listener for the connection state failed")

    # The session's `Host`.

    def output_ready(self) -> None:
        """Schedule writing the session's frames."""
        self._reconnector.output_ready()

    def deadline_set(self, at: float) -> None:
        """Set the one timer to the earliest deadline."""
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
        """Cancel a running invocation."""
        self._runner.abort(invocation, reason)

    def start_trigger(
        self, trigger: TriggerInstance, trigger_type: TriggerType, connection: int
    ) -> None:
        """Start a trigger of one of the worker's types."""
        self._provided.start(trigger, trigger_type, connection)

    def stop_trigger(self, trigger_id: str) -> None:
        """Stop a trigger, if it was started."""
        self._provided.stop(trigger_id)

    def stop_triggers(self, trigger_type: TriggerType) -> None:
        """Stop all triggers of a type."""
        self._provided.stop_all(trigger_type)

    def connection_lost(self) -> None:
        """Cancel invocations and stop triggers: the engine sends them again after a reconnect."""
        self._runner.connection_lost()
        self._provided.stop_all()

    def refused(self, reason: str) -> None:
        """End: the engine refuses this worker."""
        self._reconnector.refuse(reason)

    def stalled(self) -> None:
        """Close the connection: the engine does not read."""
        log.warning("[engine] The engine does not read; closing the connection")
        self._reconnector.cut()

    def join_or_warn(self, seconds: float) -> None:
        """Wait for the end of the thread, unless called in it."""
        if threading.current_thread() is self:
            return
        self.join(seconds)
        if self.is_alive():
            log.warning("[engine] A handler blocks the worker's loop; it ends when that returns")
