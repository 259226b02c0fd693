"""Reads a W3C ``traceparent``; what does not have the form counts as absent."""

from __future__ import annotations

import re
from typing import NamedTuple

_FORM = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)


class TraceIds(NamedTuple):
    """What a ``traceparent`` says."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits: the span that what carries it belongs to."""
    is_sampled: bool
    """Whether the trace is recorded."""


def read_traceparent(text: str | None) -> TraceIds | None:
    """
    Read a ``traceparent``.

    Args:
        text: As it came; may be anything.

    Returns:
        Its ids; None when it is none.

    """
    found = _FORM.fullmatch(text) if text else None
    if found is None or (found[4] is not None and found[0].startswith("00-")):
        return None
    return TraceIds(found[1], found[2], bool(int(found[3], 16) & 1))


def looks_sampled(text: str) -> bool:
    """Tell whether a text says that its trace is recorded, if it is a ``traceparent``."""
    return text[54:55] in _SAMPLED


_SAMPLED = frozenset("13579bdf")
