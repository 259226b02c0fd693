"""
WebSockets as lines: the only file that knows `websockets`.

A line pings, and gives up when nothing at all was heard for too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol

from ._limits import (
    CLOSE_TIMEOUT_MS,
    MESSAGE_BYTES_MAX,
    MESSAGE_SLACK_BYTES,
    OPEN_TIMEOUT_MS,
    PING_INTERVAL_MS,
    SILENCE_MS,
)
from ._tls_hint import with_tls_hint
from ._transport import LineLost, Transport

BATCH_PROTOCOL = Subprotocol("engine.batch.v1")
LAUNCH_ID_HEADER = "x-engine-launch-id"
_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


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
            raise LineLost(with_tls_hint(f"HTTP {error.response.status_code}")) from error
        except Exception as error:
            raise LineLost(with_tls_hint(_reason(error))) from error
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
    """
    Hands over whole messages, those together that came together.

    The library's own way of reading and writing costs a turn of the loop and a system call for
    each message. Its protocol, which knows all the rules, is the same.
    """

    heard = 0.0
    """When anything came, also the parts of a long message."""
    received: Callable[[list[str]], None] | None = None
    writable: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.over = asyncio.Event()
        """Set as soon as nothing more can be said."""
        self.drained = asyncio.Event()
        self.drained.set()
        self._messages: list[str] = []
        self._parts: list[bytes | bytearray | memoryview] = []
        self._is_text = True

    def data_received(self, data: bytes) -> None:
        self.heard = self.loop.time()
        super().data_received(data)
        self._hand_over()
        if self.protocol.state not in (State.CONNECTING, State.OPEN):
            self._end_soon()

    def process_event(self, event: Any) -> None:
        if not isinstance(event, Frame) or event.opcode not in _DATA:
            super().process_event(event)
            return
        if event.opcode is not Opcode.CONT:
            self._is_text = event.opcode is Opcode.TEXT
        if not event.fin or self._parts:
            self._parts.append(event.data)
            if not event.fin:
                return
        whole = b"".join(self._parts) if self._parts else event.data
        self._parts.clear()
        if self.over.is_set():
            return
        try:
            # A binary frame that cannot be read is only a message that cannot.
            self._messages.append(str(whole, "utf-8", "strict" if self._is_text else "replace"))
        except UnicodeDecodeError as error:
            self.protocol.fail(1007, f"{error.reason} at position {error.start}")
            self.send_data()
            self._end_soon()

    def listen(self, received: Callable[[list[str]], None], writable: Callable[[], None]) -> None:
        self.received, self.writable = received, writable
        self._hand_over()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.drained.clear()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.drained.set()
        if self.writable is not None:
            self.writable()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.over.set()
        self.drained.set()

    def _hand_over(self) -> None:
        if self._messages and self.received is not None:
            messages, self._messages = self._messages, []
            self.received(messages)

    def _end_soon(self) -> None:
        if not self.over.is_set():
            self.over.set()
            # The peer is to close now; it has as long as for the answer to a close.
            self.loop.call_later(CLOSE_TIMEOUT_MS / 1000, self.transport.abort)


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

    @property
    def is_full(self) -> bool:
        """Whether the peer does not keep up."""
        return not self._connection.drained.is_set()

    def listen(self, received: Callable[[list[str]], None], writable: Callable[[], None]) -> None:
        """Hand over what comes from now on, and what has come already."""
        self._connection.listen(received, writable)

    def write(self, frames: Sequence[str | bytes]) -> None:
        """Send text or binary frames, all in one go."""
        protocol, transport = self._connection.protocol, self._connection.transport
        if protocol.state is not State.OPEN or transport.is_closing():
            raise LineLost(self._why())
        for frame in frames:
            if isinstance(frame, str):
                protocol.send_text(frame.encode())
            else:
                protocol.send_binary(frame)
        transport.write(b"".join(protocol.data_to_send()))

    async def drain(self) -> None:
        """Wait until the line is full no more."""
        await self._connection.drained.wait()
        if self._connection.over.is_set():
            raise LineLost(self._why())

    async def ended(self) -> str:
        """Wait until the line is over; returns why."""
        await self._connection.over.wait()
        self._end_tasks()
        return self._why()

    async def close(self) -> None:
        """End the line in an orderly way."""
        try:
            await self._connection.close()
        finally:
            self._connection.transport.abort()  # Also when the peer does not answer.
            self._end_tasks()

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

    def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _why(self) -> str:
        protocol = self._connection.protocol
        return _closed_by(protocol.close_rcvd or protocol.close_sent)


def _reason(error: BaseException) -> str:
    if isinstance(error, ConnectionClosed):
        return _closed_by(error.rcvd or error.sent)
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return "no answer in time"
    return str(error) or type(error).__name__


def _closed_by(closed: Close | None) -> str:
    return f"{closed.code} {closed.reason}".strip() if closed else "connection lost"


# Versions before 15 know no proxies and no such argument. A worker dials directly, as in
# every other language.
_PROXY: dict[str, Any] = (
    {"proxy": None} if "proxy" in inspect.signature(connect.__init__).parameters else {}
)
