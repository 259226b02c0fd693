"""Packages that are used where they are installed: the extra ``engine-sdk[fast]``."""

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


def find_extra(name: str) -> ModuleType | None:
    """Import a package of the extra; None: it is not there, or ``ENGINE_SDK_FAST=0``."""
    if os.environ.get("ENGINE_SDK_FAST", "").lower() in ("0", "false"):
        return None
    try:
        return importlib.import_module(name)
    except Exception:
        return None  # Not installed, or not made for this Python: the plain way works as well.


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


def new_loop() -> asyncio.AbstractEventLoop:
    """
    Make a loop.

    The loops of a program that set a policy of its own stay what they are. Nobody else's loop
    is touched: uvloop is used for the worker's own thread and for nothing else.
    """
    loop = asyncio.new_event_loop()
    if sys.platform == "win32" or type(loop) is not asyncio.SelectorEventLoop:
        return loop
    uvloop = find_extra("uvloop")
    if uvloop is None:
        return loop
    loop.close()
    made: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return made
