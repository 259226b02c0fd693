"""
Hands work of any thread to an event loop: however much comes at once, the loop is woken once.

Waking a loop of another thread costs a system call, which is more than most of the work.
Nothing here takes a lock, since the loop's own thread may be stopped anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable

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
