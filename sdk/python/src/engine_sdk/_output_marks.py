"""
Marks the output of handlers, so that the engine can assign each printed line to a call.

A mark is ``ESC ] engine ; <trace>-<span> [;logger] BEL`` at the start of a line. Terminals do not
show it, and the engine, which starts workers with ``ENGINE_OUTPUT_MARKS=1``, removes it. Without
that variable the streams stay unchanged.

``print`` writes a line in pieces, and handlers run concurrently: an incomplete line of a handler is
buffered until it is complete or flushed, or the handler ends, so that no two handlers share a line.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TextIO

from ._context import CURRENT
from ._otlp import read_traceparent

OUTPUT_LINE_CHARS_MAX: Final = 64 * 1024
"""Longest incomplete line that is buffered."""


_LOGGER_PRINTS: ContextVar[bool] = ContextVar("engine_sdk_logger_prints", default=False)
_MARKED = "_engine_sdk_marks"


@contextmanager
def printing_as_logger() -> Iterator[None]:
    """Mark output of this block as sent to the engine already."""
    token = _LOGGER_PRINTS.set(True)
    try:
        yield
    finally:
        _LOGGER_PRINTS.reset(token)


def mark_output() -> None:
    """Start to mark the output of handlers, if ``ENGINE_OUTPUT_MARKS=1``."""
    if os.environ.get("ENGINE_OUTPUT_MARKS") != "1":
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not hasattr(stream, _MARKED):
            try:
                _mark(stream)
            except AttributeError:
                continue  # The methods of this stream cannot be replaced.


def finish_output() -> None:
    """Write the incomplete line of the handler that ends here."""
    for stream in (sys.stdout, sys.stderr):
        lines = getattr(stream, _MARKED, None)
        if isinstance(lines, _Lines):
            lines.finish()


class _Lines:
    """Writes to one stream in whole lines per handler; mark ``""`` is code outside handlers."""

    def __init__(self, stream: TextIO) -> None:
        self._write = stream.write
        self._flush = stream.flush
        # Reentrant, because a signal handler may print while it is held.
        self._lock = threading.RLock()
        self._begun: dict[str, str] = {}
        self._open: str | None = None
        """Mark of the incomplete line on the stream."""
        self._was_ended = False
        """Whether a handler's output ended an incomplete line of code outside handlers."""

    def write(self, text: Any) -> int:
        """Replace the stream's ``write``."""
        if not isinstance(text, str) or not text:
            return self._write(text)
        mark = _current_mark()
        with self._lock:
            if mark:
                self._write_marked(mark, text)
            else:
                self._write_plain(text)
        return len(text)

    def flush(self) -> None:
        """Replace the stream's ``flush``."""
        with self._lock:
            mark = _current_mark()
            if rest := self._begun.pop(mark, ""):
                self._put(mark, rest)
        self._flush()

    def finish(self) -> None:
        """Write the incomplete line of the current handler."""
        with self._lock:
            mark = _current_mark()
            if rest := self._begun.pop(mark, ""):
                self._put(mark, rest + "\n")

    def _write_plain(self, text: str) -> None:
        was_ended, self._was_ended = self._was_ended, False
        rest = text[1:] if was_ended and text.startswith("\n") else text
        if rest:
            self._put("", rest)

    def _write_marked(self, mark: str, text: str) -> None:
        whole, newline, rest = (self._begun.pop(mark, "") + text).rpartition("\n")
        if newline:
            self._put(mark, whole + newline)
        if len(rest) > OUTPUT_LINE_CHARS_MAX:
            self._put(mark, rest)
        elif rest:
            self._begun[mark] = rest

    def _put(self, mark: str, text: str) -> None:
        if self._open is not None and self._open != mark:
            self._write("\n")
            self._was_ended = self._open == ""
            self._open = None
        start = "" if self._open == mark else mark
        ended = text.endswith("\n")
        body = start + (text[:-1] if ended else text).replace("\n", "\n" + mark)
        self._write(body + "\n" if ended else body)
        self._open = None if ended else mark


def _mark(stream: TextIO) -> None:
    lines = _Lines(stream)
    setattr(stream, "write", lines.write)  # noqa: B010 - the type declares it read-only
    setattr(stream, "flush", lines.flush)  # noqa: B010
    setattr(stream, _MARKED, lines)


def _current_mark() -> str:
    context, is_logger = CURRENT.get(), _LOGGER_PRINTS.get()
    ids = read_traceparent(context.traceparent) if context is not None else None
    if ids is None and not is_logger:
        return ""
    trace = "" if ids is None else f"{ids.trace_id}-{ids.span_id}"
    return f"\x1b]engine;{trace}{';logger' if is_logger else ''}\a"
