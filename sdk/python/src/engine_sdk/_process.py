"""
The live workers of the process, and how signals end them.

Signal handlers belong to the program, so they are set only where it set none. While the main
thread runs, it gets what Python would raise (KeyboardInterrupt, SystemExit); after it has ended,
the process exits with code 0 as soon as the workers have shut down.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Protocol

from ._transport import LEAVE_MS

_SIGTERM_EXIT = 128 + 15
_SIGINT_EXIT = 128 + 2


class LiveWorker(Protocol):
    """A worker as the process sees it."""

    def leave(self) -> None:
        """Begin to shut down, without blocking and without a lock."""

    @property
    def is_alive(self) -> bool:
        """Whether its thread keeps the process alive."""
        ...


class Process:
    """The live workers of this process."""

    def __init__(self) -> None:
        self._workers: list[LiveWorker] = []
        self._leaving = False
        self._hooked = False
        self._exit_code = 0
        self._wake = _thread.allocate_lock()

    @property
    def last(self) -> LiveWorker | None:
        """The live worker that was registered last."""
        return self._workers[-1] if self._workers else None

    def add(self, worker: LiveWorker) -> None:
        """Add a worker; the signals that end the program shut it down."""
        self._workers.append(worker)
        if threading.current_thread() is not threading.main_thread() or hasattr(sys, "ps1"):
            return  # At a prompt Ctrl-C stops a command, not the program.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupted)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminated)
        if not self._hooked:
            self._hooked = True
            # Started now: Python may refuse to start threads when the signal arrives.
            self._wake.acquire()
            threading.Thread(target=self._end, name="engine-sdk-end", daemon=True).start()
            self._previous_hook = sys.excepthook
            sys.excepthook = self._uncaught

    def remove(self, worker: LiveWorker) -> None:
        """Remove a worker that has shut down."""
        with contextlib.suppress(ValueError):
            self._workers.remove(worker)

    def _interrupted(self, signum: int, frame: FrameType | None) -> None:
        main_runs = threading.main_thread().is_alive()
        if self._leaving and not main_runs:
            os._exit(_SIGINT_EXIT)  # A second Ctrl-C does not wait.
        self._leave(_SIGINT_EXIT)
        if main_runs:
            signal.default_int_handler(signum, frame)

    def _terminated(self, signum: int, _frame: FrameType | None) -> None:
        self._leave(_SIGTERM_EXIT)
        if threading.main_thread().is_alive():
            raise SystemExit(_SIGTERM_EXIT)

    def _leave(self, code: int) -> None:
        for worker in list(self._workers):
            worker.leave()
        if not self._leaving:
            self._leaving = True
            self._exit_code = code
            if self._wake.locked():
                self._wake.release()

    def _uncaught(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        # A failed script must not stay alive with some of its functions.
        for worker in list(self._workers):
            worker.leave()
        if not issubclass(kind, KeyboardInterrupt):
            self._previous_hook(kind, error, trace)

    def _end(self) -> None:
        """Exit if a worker keeps the process alive long after the signal."""
        self._wake.acquire()
        threading.main_thread().join()
        time.sleep(2 * LEAVE_MS / 1000)
        if not any(worker.is_alive for worker in list(self._workers)):
            return  # Other threads are the program's concern.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(self._exit_code)


PROCESS = Process()
"""The singleton that signal handlers and ``Logger()`` use."""
