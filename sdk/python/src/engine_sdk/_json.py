"""
JSON text to values and back: by ``orjson`` where it is installed, else by Python's own.

Which of the two it is must not be noticed. So orjson does only what both do alike; whatever it
refuses, and whatever it would do in its own way, is left to Python's, which decides.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable
from typing import Any

from ._extras import find_extra

_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DIGITS = bytes(48 if chr(byte) in "0123456789" else 32 for byte in range(256))
"""Makes every digit a 0 and everything else a blank."""
_LONG_NUMBER = b"0" * 19
"""The shortest integer that may need more than 64 bits."""


def plain_dumps(value: Any) -> str:
    """
    Write a value as JSON without spaces, in one line.

    Raises:
        TypeError, ValueError, RuntimeError: When JSON cannot hold it.

    """
    return _compact.encode(value)


def plain_loads(text: str) -> Any:
    """
    Read JSON.

    Raises:
        ValueError, RecursionError: When the text is none, or is nested too deeply.

    """
    return json.loads(text)


def make_fast(orjson: Any) -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    """Make what `plain_dumps` and `plain_loads` do, but with orjson."""

    def dumps(value: Any) -> str:
        try:
            # Refuses all but the plain types: orjson writes dates, UUIDs, enums and the like too.
            # A look at each part in Python takes as long as writing JSON does.
            marshal.dumps(value, 2)
            encoded: bytes = orjson.dumps(value)
        except Exception:
            return plain_dumps(value)
        # NaN would have become null.
        return plain_dumps(value) if b"null" in encoded else encoded.decode()

    def loads(text: str) -> Any:
        # Integers beyond 64 bits would come as floats.
        if _LONG_NUMBER in text.encode("utf-8", "replace").translate(_DIGITS):
            return plain_loads(text)
        try:
            return orjson.loads(text)
        except ValueError:
            return plain_loads(text)

    return dumps, loads


def choose() -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    """Look which way of writing and reading there is."""
    orjson = find_extra("orjson")
    return (plain_dumps, plain_loads) if orjson is None else make_fast(orjson)


dumps, loads = choose()
