"""
The threads that sync handlers run in.

A thread that waits for a call of its own does not count as busy: else a few handlers that
call functions of their own worker could wait for each other for ever. The threads are
daemons, so that a handler that never returns cannot keep the program from ending.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ._limits import THREAD_IDLE_MS, THREADS_MAX


class ThreadPool:
    """Runs jobs, oldest first, a bounded number at a time."""

    def __init__(self, busy_max: int, threads_max: int = THREADS_MAX) -> None:
        self._busy_max = busy_max
        self._threads_max = threads_max
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idle = 0
        self._busy = 0
        self._closed = False

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
        """Wake or start a thread for a waiting job; the lock is held."""
        if not self._jobs or self._busy >= self._busy_max:
            return
        if self._idle >= len(self._jobs):
            self._changed.notify()
        elif self._threads < self._threads_max:
            self._threads += 1
            try:
                PoolThread(self).start()
            except RuntimeError:  # The system has no more threads; those there are go on.
                self._threads -= 1
                if self._threads == 0:
                    self._jobs.pop()
                    raise

    def work(self) -> None:
        """Do jobs until there are none for a while."""
        while (job := self._next()) is not None:
            try:
                job()
            finally:
                with self._changed:
                    self._busy -= 1

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while True:
                if self._jobs and self._busy < self._busy_max:
                    self._busy += 1
                    return self._jobs.popleft()
                self._idle += 1
                woken = self._changed.wait(THREAD_IDLE_MS / 1000)
                self._idle -= 1
                if self._closed or not (woken or self._jobs):
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
