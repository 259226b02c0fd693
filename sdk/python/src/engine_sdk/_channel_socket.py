"""
The WebSocket of one end of a channel (PROTOCOL 7).

Unlike a `Transport` it stops reading while the program is behind, and it never reconnects: an end
is claimed once. Its methods are called in the loop that opened it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.protocol import State

from ._errors import EngineError
from ._transport import (
    INBOUND_BYTES_MAX,
    OPEN_TIMEOUT_MS,
    PING_INTERVAL_MS,
    PROXY,
    SILENCE_MS,
    failure_text,
)

HELD_BYTES_MAX: Final = 256 * 1024
"""Bytes that wait for the program before the connection is not read."""

UNSENT_BYTES_MAX: Final = 256 * 1024
"""Unsent bytes above which a writer waits."""

MESSAGE_BYTES: Final = 256
"""What a message counts beside its bytes."""

REASON_BYTES_MAX: Final = 123
"""Longest reason of a close frame, in UTF-8."""

CLOSE_COMPLETE: Final = 1000
CLOSE_NO_CODE: Final = 1005
CLOSE_LOST: Final = 1006
CLOSE_CLAIMED: Final = 1008
CLOSE_ABORTED: Final = 4001
READER_CLOSED: Final = "reader_closed"
STREAM_COMPLETE: Final = "stream_complete"

_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)
Message = bytes | str


def channel_url(engine_url: str, channel_id: str, access_key: str, direction: str) -> str:
    """Return the address of an end: the route comes before the query of the engine's address."""
    parts = urlsplit(engine_url)
    path = f"{parts.path.rstrip('/')}/ws/channels/{quote(channel_id, safe='')}"
    query = urlencode({"key": access_key, "dir": direction})
    return urlunsplit(parts._replace(path=path, query=f"{parts.query}&{query}".lstrip("&")))


def short_reason(text: str) -> str:
    """Cut a reason so that it fits into a close frame."""
    return text.encode("utf-8", "replace")[:REASON_BYTES_MAX].decode("utf-8", "ignore")


class _ChannelConnection(ClientConnection):
    """Keeps whole messages until they are taken; the library's protocol is used unchanged."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.messages: deque[tuple[Message, int]] = deque()
        self.held_bytes = 0
        self.is_paused = False
        self.over = asyncio.Event()
        self.closing = asyncio.Event()
        """Set when the engine has sent its close frame, or the connection is over."""
        self.lost: Callable[[], None] | None = None
        """Called when the connection is over."""
        self.changed = asyncio.Event()
        """Set when a message has arrived, or the connection is over."""
        self.drained = asyncio.Event()
        self.drained.set()
        self._parts: list[Any] = []
        self._is_text = False

    def process_event(self, event: Any) -> None:
        if not isinstance(event, Frame) or event.opcode not in _DATA:
            super().process_event(event)
            if isinstance(event, Frame) and event.opcode is Opcode.CLOSE:
                self.closing.set()
                self.drained.set()  # The engine may read nothing more.
            return
        if event.opcode is not Opcode.CONT:
            self._is_text = event.opcode is Opcode.TEXT
        self._parts.append(event.data)
        if not event.fin:
            return
        whole = b"".join(self._parts)
        self._parts.clear()
        size = len(whole) + MESSAGE_BYTES
        self.messages.append((str(whole, "utf-8", "replace") if self._is_text else whole, size))
        self.held_bytes += size
        if self.held_bytes > HELD_BYTES_MAX and not self.is_paused:
            self.is_paused = True
            self.transport.pause_reading()
        self.changed.set()

    def take(self) -> Message:
        """Take the oldest message."""
        message, size = self.messages.popleft()
        self.held_bytes -= size
        if self.is_paused and self.held_bytes <= HELD_BYTES_MAX // 2:
            self.is_paused = False
            if not self.over.is_set() and not self.transport.is_closing():
                self.transport.resume_reading()
        return message

    def pause_writing(self) -> None:
        super().pause_writing()
        self.drained.clear()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.drained.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.over.set()
        self.closing.set()
        self.drained.set()
        self.changed.set()
        if self.lost is not None:
            self.lost()


class ChannelSocket:
    """One open end."""

    def __init__(self, connection: _ChannelConnection, silence_ms: float = SILENCE_MS) -> None:
        self._connection = connection
        self._silence = silence_ms / 1000
        connection.transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX)
        wire = connection.transport.get_extra_info("socket")
        if wire is not None:
            with contextlib.suppress(OSError):
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pings = asyncio.ensure_future(self._ping())

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended, or the engine is closing it."""
        return self._connection.closing.is_set()

    def when_lost(self, lost: Callable[[], None]) -> None:
        """Call ``lost`` when the connection has ended, or now if it has."""
        self._connection.lost = lost
        if self._connection.over.is_set():
            lost()

    def closed_with(self) -> tuple[int, str]:
        """Return code and reason of the engine's close frame."""
        closed = self._connection.protocol.close_rcvd
        if closed is None:
            return CLOSE_LOST, "connection lost"
        return closed.code, closed.reason

    async def receive(self) -> Message | None:
        """Wait for the next message; None when the connection has ended and all is taken."""
        connection = self._connection
        while not connection.messages:
            if connection.over.is_set():
                return None
            connection.changed.clear()
            try:
                await asyncio.wait_for(connection.changed.wait(), self._silence)
            except (asyncio.TimeoutError, TimeoutError):
                await self._probe()
        return connection.take()

    async def send(self, message: Message) -> None:
        """Send a message; returns when more may be sent or the connection has ended."""
        protocol, transport = self._connection.protocol, self._connection.transport
        if protocol.state is not State.OPEN or transport.is_closing():
            return  # `is_over` follows.
        if isinstance(message, str):
            protocol.send_text(message.encode())
        else:
            protocol.send_binary(message)
        transport.writelines(protocol.data_to_send())
        await self._connection.drained.wait()

    async def finish(self, code: int, reason: str) -> None:
        """Close when all is sent, and wait until the engine has it, however long that takes."""
        with contextlib.suppress(ConnectionClosed, OSError):
            await self._connection.close(code, short_reason(reason))
        self._pings.cancel()

    def abort(self) -> None:
        """End the connection at once."""
        self._pings.cancel()
        self._connection.transport.abort()

    async def ended(self) -> None:
        """Wait until the connection has ended, or the engine is closing it."""
        await self._connection.closing.wait()
        self._pings.cancel()

    async def _probe(self) -> None:
        """Nothing came for long: ends the connection if a ping is not answered either."""
        with contextlib.suppress(ConnectionClosed, OSError, RuntimeError):
            answered = await self._connection.ping()
            done, _ = await asyncio.wait({answered}, timeout=self._silence)
            if not done:
                self._connection.transport.abort()

    async def _ping(self) -> None:
        """Ping also while nothing is read, so that the engine knows that this side lives."""
        with contextlib.suppress(ConnectionClosed, OSError, RuntimeError):
            while True:
                await asyncio.sleep(PING_INTERVAL_MS / 1000)
                # Not awaited: the answer comes when the connection is read again.
                asyncio.ensure_future(self._connection.ping()).add_done_callback(_ignore)


def _ignore(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()


async def open_socket(url: str, channel_id: str) -> ChannelSocket:
    """
    Connect to one end.

    Raises:
        EngineError: ``channel_not_found``, ``engine_unreachable``.

    """
    try:
        connection = await connect(
            url,
            compression=None,
            open_timeout=OPEN_TIMEOUT_MS / 1000,
            close_timeout=None,
            ping_interval=None,
            max_size=INBOUND_BYTES_MAX,
            create_connection=_ChannelConnection,
            **PROXY,
        )
    except InvalidStatus as error:
        status = error.response.status_code
        if status == 404:
            text = f"There is no channel {channel_id}, or the key of its reference is wrong"
            raise EngineError("channel_not_found", text) from None
        text = f"Cannot connect to channel {channel_id}: HTTP {status}"
        raise EngineError("engine_unreachable", text, retryable=True) from None
    except Exception as error:
        text = f"Cannot connect to channel {channel_id}: {failure_text(error)}"
        raise EngineError("engine_unreachable", text, retryable=True) from None
    assert isinstance(connection, _ChannelConnection), "create_connection decides the class"
    return ChannelSocket(connection)
