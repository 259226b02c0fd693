"""
The packages of the extra ``engine-sdk[fast]``, used if installed: ``orjson`` and ``uvloop``.

Results are the same with and without them. orjson therefore handles only values that it treats
exactly as Python's ``json`` does; everything else goes to ``json``, which decides. uvloop runs the
worker's own thread only.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import marshal
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def to_json(value: Any) -> Any:
    """Return the form of an object that travels; raises TypeError for any other."""
    form = getattr(type(value), "__engine_json__", None)
    if form is None:
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return form(value)


_compact = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=to_json
)
_decoder = json.JSONDecoder()
_DIGITS = bytes(48 if chr(byte) in "0123456789" else 32 for byte in range(256))
"""Translates every digit to 0 and every other byte to a blank."""
_LONG_NUMBER = b"0" * 19
"""The shortest integer literal that may need more than 64 bits."""


def plain_dumps(value: Any) -> str:
    """
    Encode a value as JSON without spaces, in one line, with Python's ``json``.

    Raises:
        TypeError, ValueError, RuntimeError: When JSON cannot represent it.

    """
    return _compact.encode(value)


def plain_loads(text: str) -> Any:
    """
    Decode JSON with Python's ``json``.

    Raises:
        ValueError, RecursionError: When the text is not JSON, or is nested too deeply.

    """
    try:
        # Half the time of `json.loads`, which first looks for white space; frames have none.
        value, end = _decoder.raw_decode(text)
    except ValueError:
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


def make_fast(orjson: Any) -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    """Return the equivalents of `plain_dumps` and `plain_loads` that use orjson."""

    def dumps(value: Any) -> str:
        try:
            # Rejects all but plain types: orjson encodes dates, UUIDs, enums and others too.
            # Checking each part in Python would take as long as encoding it.
            marshal.dumps(value, 2)
            encoded: bytes = orjson.dumps(value)
        except Exception:
            return plain_dumps(value)
        # orjson encodes NaN as null.
        return plain_dumps(value) if b"null" in encoded else encoded.decode()

    def loads(text: str) -> Any:
        # orjson decodes integers beyond 64 bits as floats.
        if _LONG_NUMBER in text.encode("utf-8", "replace").translate(_DIGITS):
            return plain_loads(text)
        try:
            return orjson.loads(text)
        except ValueError:
            return plain_loads(text)

    return dumps, loads


def choose() -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    """Return the encoder and the decoder to use."""
    orjson = find_extra("orjson")
    return (plain_dumps, plain_loads) if orjson is None else make_fast(orjson)


def find_extra(name: str) -> ModuleType | None:
    """Import a package of the extra; None: not installed, or ``ENGINE_SDK_FAST=0``."""
    if os.environ.get("ENGINE_SDK_FAST", "").lower() in ("0", "false"):
        return None
    try:
        return importlib.import_module(name)
    except Exception:
        return None  # Not installed, or not built for this Python.


def new_loop(plain: Callable[[], asyncio.AbstractEventLoop]) -> asyncio.AbstractEventLoop:
    """
    Create the event loop of a worker's thread: uvloop's if installed, else a ``plain`` one.

    A program that set its own event loop policy gets a loop of that policy.
    """
    loop = asyncio.new_event_loop()
    if sys.platform == "win32" or type(loop) is not asyncio.SelectorEventLoop:
        return loop
    loop.close()
    uvloop = find_extra("uvloop")
    made: asyncio.AbstractEventLoop = plain() if uvloop is None else uvloop.new_event_loop()
    return made


dumps, loads = choose()
