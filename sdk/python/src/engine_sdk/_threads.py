"""
Threads for sync handlers, and how other threads pass work to an event loop.

A thread that waits for a call of its own does not count as busy: otherwise a few handlers that
call functions of their own worker could deadlock. The threads are daemons, so that a handler that
never returns does not keep the program alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

THREADS_MAX: Final = 1_024
"""Threads in total, including those that wait for calls of their own."""

THREAD_IDLE_MS: Final = 10_000
"""A thread without work for so long ends."""


Result = TypeVar("Result")

# These cannot start threads once the main thread has ended (CPython issue 113964).
_STARTS_EARLY = (3, 12, 0) <= sys.version_info[:3] < (3, 12, 2)

log = logging.getLogger("engine_sdk")
Work = Callable[[], object]
_here = threading.local()


class PoolLoad(NamedTuple):
    """How busy a pool is."""

    busy: int
    """Threads that run a job and do not wait for a call of their own."""
    busy_max: int
    waiting: int
    """Jobs that no thread has taken yet."""


class ThreadPool:
    """Runs jobs, oldest first, a bounded number at a time."""

    def __init__(self, busy_max: int, threads_max: int = THREADS_MAX) -> None:
        self._busy_max = busy_max
        self._threads_max = threads_max
        self._changed = threading.Condition(threading.Lock())
        self._jobs: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idle = 0
        self._busy = 0
        self._is_coming = False
        """Whether a woken or started thread has not taken a job yet."""
        self._closed = False
        if _STARTS_EARLY:
            for _ in range(busy_max):
                self._threads += 1
                PoolThread(self).start()

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job as soon as a thread is free; the job must not raise."""
        with self._changed:
            if self._closed:
                return
            self._jobs.append(job)
            self._serve()

    def load(self) -> PoolLoad:
        """Return how busy it is now."""
        with self._changed:
            return PoolLoad(self._busy, self._busy_max, len(self._jobs))

    def close(self) -> None:
        """Drop the jobs that have not started; the threads end after their jobs."""
        with self._changed:
            self._closed = True
            self._jobs.clear()
            self._changed.notify_all()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Do not count this thread as busy in the block, so that another job can run."""
        with self._changed:
            self._busy -= 1
            self._serve()
        try:
            yield
        finally:
            with self._changed:
                self._busy += 1  # May exceed the bound until a job ends.

    def _serve(self) -> None:
        """
        Wake or start a thread for a queued job; the lock is held.

        One at a time: that thread then wakes the next. Few threads thus do many short jobs,
        without contention for the interpreter.
        """
        if not self._jobs or self._busy >= self._busy_max or self._is_coming:
            return
        if self._idle:
            self._is_coming = True
            self._changed.notify()
        elif self._threads < self._threads_max:
            self._is_coming = True
            self._threads += 1
            try:
                PoolThread(self).start()
            except RuntimeError:  # The system has no more threads; existing ones continue.
                self._is_coming = False
                self._threads -= 1
                if self._threads == 0:
                    self._jobs.pop()
                    raise

    def work(self) -> None:
        """Run jobs until there are none for `THREAD_IDLE_MS`."""
        self._arrive()
        while (job := self._next()) is not None:
            try:
                job()
            finally:
                with self._changed:
                    self._busy -= 1

    def _arrive(self) -> None:
        with self._changed:
            self._is_coming = False

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while True:
                if self._jobs and self._busy < self._busy_max:
                    self._busy += 1
                    job = self._jobs.popleft()
                    self._serve()
                    return job
                self._idle += 1
                woken = self._changed.wait(THREAD_IDLE_MS / 1000)
                self._idle -= 1
                # Also on timeout: the wake-up may have come at the same moment.
                self._is_coming = False
                if self._closed or not (woken or self._jobs or _STARTS_EARLY):
                    self._threads -= 1
                    return None


class PoolThread(threading.Thread):
    """A thread of a pool."""

    def __init__(self, pool: ThreadPool) -> None:
        super().__init__(name="engine-sdk-handler", daemon=True)
        self.pool = pool

    def run(self) -> None:
        """Run the pool's jobs."""
        self.pool.work()


class LoopExecutor(ThreadPoolExecutor):
    """
    The default executor of a worker's loop: name lookups, and ``asyncio.to_thread`` of handlers.

    Python's own accepts no work once the main thread has ended, which is how most workers run,
    and it joins its threads before the process may exit.
    """

    def __init__(self, pool: ThreadPool) -> None:
        super().__init__(max_workers=1)  # Unused: a loop calls only submit().
        self._engine_pool = pool

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Run a function in a thread of the pool."""
        future: Future[Result] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._engine_pool.submit(job)
        return future


class Mailbox:
    """
    Work for one loop from any thread, oldest first; wakes the loop once per batch.

    Waking the loop of another thread costs a system call, more than most of the work. Takes no
    lock, because a signal handler may interrupt either thread anywhere, raise, and put work itself.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        thread: int | None = None,
        emptied: Work = lambda: None,
    ) -> None:
        self.loop = loop
        self.thread: int | None = thread
        """Identifier of the thread that runs the loop."""
        self._emptied = emptied
        self._works: deque[Work] = deque()
        self._round = object()
        """Replaced when the loop has emptied the mailbox."""
        self._woken_round: object = None
        """The last one that the loop was woken for: while it is the present one, it will come."""
        self._is_closed = False

    @property
    def is_empty(self) -> bool:
        """Whether the loop has begun all work."""
        return not self._works

    def put(self, work: Work) -> None:
        """Run ``work``: now in the loop's thread, from other threads in the order of arrival."""
        if threading.get_ident() == self.thread:
            work()
            return
        self._works.append(work)
        if self._is_closed:
            self._do(len(self._works))  # The loop has ended.
        elif (awaited := self._round) is not self._woken_round:
            with contextlib.suppress(RuntimeError):  # The loop is closed.
                self.loop.call_soon_threadsafe(self._empty)
            self._woken_round = awaited  # Not before: it may be interrupted until here.

    def close(self) -> None:
        """Run the remaining work; later work runs in the thread that puts it."""
        self._is_closed = True
        self._do(len(self._works))

    def _empty(self) -> None:
        try:
            # Work that arrives meanwhile waits, so that the loop can do other things in between.
            self._do(len(self._works))
        finally:  # Also when Ctrl-C interrupts it.
            self._round = object()
            # Checked after the round has changed: earlier puts did not wake the loop.
            if self._works:
                self.loop.call_soon(self._empty)
                self._woken_round = self._round  # Not before, as in `put`.
        self._emptied()

    def _do(self, count: int) -> None:
        for _ in range(count):
            try:
                work = self._works.popleft()
            except IndexError:
                return  # Two threads may run this after the end.
            try:
                work()
            except Exception:
                log.exception("[engine] Work failed because of a bug in the SDK")


def settle(waiter: asyncio.Future[None]) -> None:
    """End a wait in the thread of its loop; nothing if it has ended."""
    if not waiter.done():
        waiter.set_result(None)


def running_loop_mailbox() -> Mailbox:
    """Return the mailbox of the loop that runs in this thread, shared by all callers."""
    loop = asyncio.get_running_loop()
    found: Mailbox | None = getattr(_here, "mailbox", None)
    if found is None or found.loop is not loop:
        found = _here.mailbox = Mailbox(loop, threading.get_ident())
    return found
