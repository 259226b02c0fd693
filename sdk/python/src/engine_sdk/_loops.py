"""The event loop of a worker's thread: uvloop's where it is installed."""

from __future__ import annotations

import asyncio
import sys

from ._extras import find_extra


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
