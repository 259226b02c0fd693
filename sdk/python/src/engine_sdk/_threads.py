"""
The threads that sync handlers run in.

A thread that waits for a call of its own does not count as busy: else a few handlers that
call functions of their own worker could wait for each other for ever. The threads are
daemons, so that a handler that never returns cannot keep the program from ending.
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
from typing import Any, Final, TypeVar

THREADS_MAX: Final = 1_024
"""Threads in all, those included that wait for a call of their own."""

THREAD_IDLE_MS: Final = 10_000
"""A thread that nobody needed for so long ends."""


Result = TypeVar("Result")

# These start no thread any more once the main thread has ended (CPython issue 113964).
_STARTS_EARLY = (3, 12, 0) <= sys.version_info[:3] < (3, 12, 2)


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
        """Whether a thread was woken or started and has not taken a job yet."""
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

    def close(self) -> None:
        """Drop the jobs that have not started, and let the threads end."""
        with self._changed:
            self._closed = True
            self._jobs.clear()
            self._changed.notify_all()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let another job run while this thread only waits."""
        with self._changed:
            self._busy -= 1
            self._serve()
        try:
            yield
        finally:
            with self._changed:
                self._busy += 1  # Perhaps one more than allowed, until a job ends.

    def _serve(self) -> None:
        """
        Wake or start a thread for a waiting job; the lock is held.

        One at a time: the one that comes sees to the next. Many short jobs are then done by
        few threads, which do not fight for the interpreter.
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
            except RuntimeError:  # The system has no more threads; those there are go on.
                self._is_coming = False
                self._threads -= 1
                if self._threads == 0:
                    self._jobs.pop()
                    raise

    def work(self) -> None:
        """Do jobs until there are none for a while."""
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
                # Also if it was not woken: it may have been, at the very moment its time was up.
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
        """Do the pool's jobs."""
        self.pool.work()


class LoopExecutor(ThreadPoolExecutor):
    """
    The default executor of a worker's loop: name look-ups, and ``asyncio.to_thread`` of handlers.

    Python's own takes no work any more once the main thread has ended, which is when most
    workers begin to live; and it waits for its threads before the process may end.
    """

    def __init__(self, pool: ThreadPool) -> None:
        super().__init__(max_workers=1)  # Never used: submit() is all that a loop calls.
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


log = logging.getLogger("engine_sdk")
Work = Callable[[], object]
_here = threading.local()


class Mailbox:
    """Work for one loop, oldest first."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        thread: int | None = None,
        emptied: Work = lambda: None,
    ) -> None:
        self.loop = loop
        self.thread: int | None = thread
        """Number of the thread in which the loop runs."""
        self._emptied = emptied
        self._works: deque[Work] = deque()
        self._is_woken = False
        self._is_closed = False

    def put(self, work: Work) -> None:
        """Have something done: now if this is the loop's thread, else in the order of asking."""
        if threading.get_ident() == self.thread:
            work()
            return
        self._works.append(work)
        if self._is_closed:
            self._do(len(self._works))  # The loop has ended, so nobody else would.
        elif not self._is_woken:
            self._is_woken = True
            with contextlib.suppress(RuntimeError):  # Closed, and nobody waits for it any more.
                self.loop.call_soon_threadsafe(self._empty)

    def close(self) -> None:
        """Do what is left; from now on everything is done where it is put."""
        self._is_closed = True
        self._do(len(self._works))

    def _empty(self) -> None:
        try:
            # What comes meanwhile waits for its turn: the loop has more to do than this.
            self._do(len(self._works))
        finally:  # Also when Ctrl-C came in the middle.
            self._is_woken = False
            # Looked at only now: what was put before this line has woken nobody.
            if self._works:
                self._is_woken = True
                self.loop.call_soon(self._empty)
        self._emptied()

    def _do(self, count: int) -> None:
        for _ in range(count):
            try:
                work = self._works.popleft()
            except IndexError:
                return  # Two threads may do this after the end.
            try:
                work()
            except Exception:
                log.exception("[engine] A piece of work failed by a bug of the SDK")


def mailbox_here() -> Mailbox:
    """Return the mailbox of the loop that runs in this thread: one for all who ask."""
    loop = asyncio.get_running_loop()
    found: Mailbox | None = getattr(_here, "mailbox", None)
    if found is None or found.loop is not loop:
        found = _here.mailbox = Mailbox(loop, threading.get_ident())
    return found
