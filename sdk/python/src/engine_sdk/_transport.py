"""
The line to the engine: the only file that knows `websockets`.

A line carries whole text messages in order. It pings, and gives up when nothing at all was
heard for too long; it never repeats anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from ._errors import invalid
from ._limits import (
    CLOSE_TIMEOUT_MS,
    MESSAGE_BYTES_MAX,
    MESSAGE_SLACK_BYTES,
    OPEN_TIMEOUT_MS,
    PING_INTERVAL_MS,
    SILENCE_MS,
)

BATCH_PROTOCOL = Subprotocol("engine.batch.v1")
LAUNCH_ID_HEADER = "x-engine-launch-id"


class LineLost(Exception):  # noqa: N818 - it is how every line ends
    """The line is over, or never opened; the text says why."""


class Transport(Protocol):
    """One end of a line."""

    batch: bool
    """Whether a frame may hold several messages, a newline between them."""

    async def send(self, frame: str | bytes) -> None:
        """Send one text or binary frame; waits while the peer does not read. Raises LineLost."""

    async def receive(self) -> str:
        """Wait for the next frame. Raises LineLost."""
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


@dataclass(frozen=True)
class WebSocketDial:
    """Opens WebSockets to one address."""

    url: str
    token: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    batch: bool = True
    """Whether to offer that a frame may hold several messages."""
    ping_ms: float = PING_INTERVAL_MS
    silence_ms: float = SILENCE_MS

    async def __call__(self) -> Transport:
        """Open a line."""
        try:
            connection = await connect(
                self.url,
                additional_headers=self._headers(),
                subprotocols=[BATCH_PROTOCOL] if self.batch else None,
                compression=None,
                open_timeout=OPEN_TIMEOUT_MS / 1000,
                close_timeout=CLOSE_TIMEOUT_MS / 1000,
                ping_interval=None,  # See WebSocketTransport.
                max_size=MESSAGE_BYTES_MAX + MESSAGE_SLACK_BYTES,
                create_connection=_Connection,
                **_PROXY,
            )
        except InvalidStatus as error:
            raise LineLost(f"HTTP {error.response.status_code}") from error
        except Exception as error:
            raise LineLost(_reason(error)) from error
        assert isinstance(connection, _Connection), "create_connection decides the class"
        return WebSocketTransport(connection, self.ping_ms, self.silence_ms)

    def _headers(self) -> dict[str, str]:
        headers = dict(self.headers)
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if launch_id := os.environ.get("ENGINE_LAUNCH_ID"):
            headers[LAUNCH_ID_HEADER] = launch_id
        return headers


class _Connection(ClientConnection):
    """Notes when anything was heard, also the parts of a long message."""

    heard = 0.0

    def data_received(self, data: bytes) -> None:
        self.heard = self.loop.time()
        super().data_received(data)


class WebSocketTransport:
    """
    One open WebSocket.

    It pings by itself: the library would end the line when one pong is late, also while
    a long message is arriving.
    """

    def __init__(self, connection: _Connection, ping_ms: float, silence_ms: float) -> None:
        self._connection = connection
        self._ping = ping_ms / 1000
        self._silence = silence_ms / 1000
        self.batch = connection.subprotocol == BATCH_PROTOCOL
        connection.heard = connection.loop.time()
        wire = connection.transport.get_extra_info("socket")
        if wire is not None:
            with contextlib.suppress(OSError):
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._tasks = {asyncio.ensure_future(self._watch())}

    async def send(self, frame: str | bytes) -> None:
        """Send one text or binary frame; waits while the peer does not read."""
        try:
            await self._connection.send(frame)
        except (ConnectionClosed, OSError) as error:
            raise LineLost(_reason(error)) from error

    async def receive(self) -> str:
        """Wait for the next frame."""
        try:
            data = await self._connection.recv()
        except (ConnectionClosed, OSError) as error:
            await self._end_tasks()
            raise LineLost(_reason(error)) from error
        return data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")

    async def close(self) -> None:
        """End the line in an orderly way."""
        try:
            await self._connection.close()
        finally:
            self._connection.transport.abort()  # Also when the peer does not answer.
            await self._end_tasks()

    async def _watch(self) -> None:
        loop, pinged = self._connection.loop, self._connection.loop.time()
        while True:
            await asyncio.sleep(min(self._ping, self._silence) / 4)
            if loop.time() - self._connection.heard >= self._silence:
                self._connection.transport.abort()
                return
            if loop.time() - pinged >= self._ping:
                pinged = loop.time()
                # On its own: behind a full buffer it waits, and the silence must be seen.
                self._tasks.add(asyncio.ensure_future(self._send_ping()))
            self._tasks = {task for task in self._tasks if not task.done()}

    async def _send_ping(self) -> None:
        with contextlib.suppress(ConnectionClosed, OSError, RuntimeError):
            await self._connection.ping()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()


def _reason(error: BaseException) -> str:
    if isinstance(error, ConnectionClosed):
        closed = error.rcvd or error.sent
        return f"{closed.code} {closed.reason}".strip() if closed else "connection lost"
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return "no answer in time"
    return str(error) or type(error).__name__


# Versions before 15 know no proxies and no such argument. A worker dials directly, as in
# every other language.
_PROXY: dict[str, Any] = (
    {"proxy": None} if "proxy" in inspect.signature(connect.__init__).parameters else {}
)
