"""
Marks what handlers print, so that the engine knows which call a line of output belongs to.

A mark is ``ESC ] engine ; <trace>-<span> [;logger] BEL`` at the start of a line; terminals
show nothing of it, and whoever started this program with ``ENGINE_OUTPUT_MARKS=1`` takes it
out. Without that variable the streams stay as they are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from ._context import CURRENT
from ._traceparent import read_traceparent

_LOGGER_PRINTS: ContextVar[bool] = ContextVar("engine_sdk_logger_prints", default=False)
_MARKED = "_engine_sdk_marks"


@contextmanager
def printing_as_logger() -> Iterator[None]:
    """Say in the mark of what is printed here that it was sent to the engine as well."""
    token = _LOGGER_PRINTS.set(True)
    try:
        yield
    finally:
        _LOGGER_PRINTS.reset(token)


def mark_output() -> None:
    """From now on mark what handlers print, if whoever started this program asked for it."""
    if os.environ.get("ENGINE_OUTPUT_MARKS") != "1":
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not hasattr(stream, _MARKED):
            try:
                _mark(stream)
            except AttributeError:
                continue  # A stream that takes no other method stays as it is.


def _mark(stream: TextIO) -> None:
    write = stream.write
    at_start = True

    def marked(text: Any) -> int:
        nonlocal at_start
        if not isinstance(text, str) or not text:
            return write(text)
        mark = _current_mark()
        was_at_start, at_start = at_start, text.endswith("\n")
        if mark is None:
            return write(text)
        body = text[:-1] if at_start else text
        body = (mark if was_at_start else "") + body.replace("\n", "\n" + mark)
        write(body + "\n" if at_start else body)
        return len(text)

    setattr(stream, "write", marked)  # noqa: B010 - only its type forbids it
    setattr(stream, _MARKED, True)


def _current_mark() -> str | None:
    context, is_logger = CURRENT.get(), _LOGGER_PRINTS.get()
    ids = read_traceparent(context.traceparent) if context is not None else None
    if ids is None and not is_logger:
        return None
    trace = "" if ids is None else f"{ids.trace_id}-{ids.span_id}"
    return f"\x1b]engine;{trace}{';logger' if is_logger else ''}\a"
