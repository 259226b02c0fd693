"""
What a line to the engine is, and where it leads; how it is made is in `_websocket`.

A line carries whole text messages in order; it never repeats anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from ._errors import invalid


class LineLost(Exception):  # noqa: N818 - it is how every line ends
    """The line is over, or never opened; the text says why."""


class Transport(Protocol):
    """One end of a line. Its methods belong to the loop it was opened on."""

    batch: bool
    """Whether a frame may hold several messages, a newline between them."""

    @property
    def is_full(self) -> bool:
        """Whether the peer does not keep up: what is written now stays in memory."""
        ...

    def listen(self, received: Callable[[list[str]], None], writable: Callable[[], None]) -> None:
        """
        Hand over what comes from now on, and what has come already.

        Args:
            received: Gets the frames that came together, in order; must not raise.
            writable: Is called when the line is full no more; must not raise.

        """

    def write(self, frames: Sequence[str | bytes]) -> None:
        """Send text or binary frames, all in one go. Raises LineLost."""

    async def drain(self) -> None:
        """Wait until the line is full no more. Raises LineLost."""

    async def ended(self) -> str:
        """Wait until the line is over; returns why."""
        ...

    async def close(self) -> None:
        """End the line in an orderly way."""


Dial = Callable[[], Awaitable[Transport]]
"""Opens a line; raises LineLost when that fails."""


def read_url(url: str) -> str:
    """
    Turn an address into one that can be dialled.

    Args:
        url: ``ws://``, ``wss://``, ``http://``, ``https://``, or ``host:port``.

    Raises:
        EngineError: ``INVALID_ARGUMENTS`` when it has another scheme, no host or a bad port.

    """
    full = url if "://" in url else f"ws://{url}"
    scheme, _, rest = full.partition("://")
    full = {"http": "ws", "https": "wss"}.get(scheme.lower(), scheme.lower()) + "://" + rest
    try:
        parts = urlsplit(full)
        _ = parts.port  # Is only looked at here.
    except ValueError as error:
        raise invalid(f"{url!r} is no address of an engine: {error}") from None
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise invalid(f"{url!r} is no address of an engine; try ws://127.0.0.1:49134")
    return full


def shown(url: str) -> str:
    """Return an address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
