"""
Connections to the engine: the `Transport` protocol, and WebSockets that implement it.

A transport carries whole messages in order and never repeats one. Only this file and
`_channel_socket` import `websockets`.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import os
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol

from ._errors import invalid

INBOUND_BYTES_MAX: Final = 256 * 1024 * 1024
"""Largest message that is received, four times what an engine sends by default."""

PING_INTERVAL_MS: Final = 20_000
"""Interval of pings on a connection."""

SILENCE_MS: Final = 60_000
"""A connection without any input for so long is dead."""

OPEN_TIMEOUT_MS: Final = 10_000
"""Time for opening a connection."""

CLOSE_TIMEOUT_MS: Final = 10_000
"""Time for the peer to answer a close frame."""

LEAVE_MS: Final = 2_000
"""Time that ``shutdown()`` gives queued frames, cancelled handlers and the peer, each."""

BATCH_PROTOCOL = Subprotocol("engine.batch.v1")
LAUNCH_ID_HEADER = "x-engine-launch-id"
_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)
_HINTS: Final = (
    (r"WRONG_VERSION_NUMBER", "the engine there does not use TLS; dial ws:// instead of wss://"),
    (r"HTTP 426|valid HTTP response", "the engine there may use TLS; dial wss:// instead of ws://"),
    (
        r"Hostname mismatch|IP address mismatch",
        "the certificate there is for another host name; dial a name that it lists",
    ),
    (r"expired|not yet valid", "the certificate there has expired, or is not valid yet"),
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "the certificate there is not trusted here; name the PEM file of its CA in SSL_CERT_FILE",
    ),
)


class ConnectionLost(Exception):  # noqa: N818 - every connection ends so
    """The connection ended or did not open; the text says why."""


class Transport(Protocol):
    """One open connection. Call its methods in the loop that opened it."""

    batch: bool
    """Whether a frame may hold several messages, a newline between them."""

    @property
    def is_full(self) -> bool:
        """Whether the peer does not keep up, so that writes stay in memory."""
        ...

    def listen(self, received: Callable[[list[str]], None], writable: Callable[[], None]) -> None:
        """
        Deliver incoming frames, those that arrived already included.

        Args:
            received: Gets frames that arrived together, in order; must not raise.
            writable: Called when the connection is no longer full; must not raise.

        """

    def write(self, frames: Sequence[str | bytes]) -> None:
        """Send text or binary frames in one write. Raises ConnectionLost."""

    async def drain(self) -> None:
        """Wait until the connection is no longer full. Raises ConnectionLost."""

    async def ended(self) -> str:
        """Wait until the connection has ended; returns why."""
        ...

    async def close(self) -> None:
        """Close with a close frame."""


Dial = Callable[[], Awaitable[Transport]]
"""Opens a connection; raises ConnectionLost when that fails."""


ENGINE_URL_DEFAULT: Final = "ws://127.0.0.1:49134"
"""Address of the engine, unless the program or ``ENGINE_URL`` names another."""


def read_url(url: str) -> str:
    """
    Normalise an address for dialling.

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
        _ = parts.port  # Parsed on access.
    except ValueError as error:
        raise invalid(f"{url!r} is not an address of an engine: {error}") from None
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise invalid(f"{url!r} is not an address of an engine; try {ENGINE_URL_DEFAULT}")
    return full


def redacted_url(url: str) -> str:
    """Return an address without user, password and query."""
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
        """Open a connection."""
        try:
            connection = await connect(
                self.url,
                additional_headers=self._headers(),
                subprotocols=[BATCH_PROTOCOL] if self.batch else None,
                compression=None,
                open_timeout=OPEN_TIMEOUT_MS / 1000,
                close_timeout=CLOSE_TIMEOUT_MS / 1000,
                ping_interval=None,  # See WebSocketTransport.
                max_size=INBOUND_BYTES_MAX,
                create_connection=_Connection,
                **PROXY,
            )
        except InvalidStatus as error:
            raise ConnectionLost(with_tls_hint(f"HTTP {error.response.status_code}")) from error
        except Exception as error:
            raise ConnectionLost(with_tls_hint(failure_text(error))) from error
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
    Delivers whole messages, together if they arrived together.

    The library's own reading and writing costs a loop iteration and a system call per message.
    Its protocol implementation is used unchanged.
    """

    heard = 0.0
    """Time of the last input, parts of a message included."""
    received: Callable[[list[str]], None] | None = None
    writable: Callable[[], None] | None = None
    unparsed: float = 0
    """Bytes of a frame that is not complete; infinity: not known."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.over = asyncio.Event()
        """Set as soon as nothing can be sent any more."""
        self.drained = asyncio.Event()
        self.drained.set()
        self._messages: list[str] = []
        self._parts: list[bytes | bytearray | memoryview] = []
        self._is_text = True

    def data_received(self, data: bytes) -> None:
        self.heard = self.loop.time()
        if self.protocol.state is State.CONNECTING:
            _, head_ends, rest = data.partition(b"\r\n\r\n")
            self.unparsed += len(rest) if head_ends else math.inf
        else:
            self.unparsed += len(data)
        super().data_received(data)
        self._deliver()
        if self.protocol.state not in (State.CONNECTING, State.OPEN):
            self._end_soon()

    def process_event(self, event: Any) -> None:
        if isinstance(event, Frame):
            self.unparsed -= _frame_size(len(event.data))
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
            # A binary frame that is not UTF-8 is a malformed message, not a broken connection.
            self._messages.append(str(whole, "utf-8", "strict" if self._is_text else "replace"))
        except UnicodeDecodeError as error:
            self.protocol.fail(1007, f"{error.reason} at position {error.start}")
            self.send_data()
            self._end_soon()

    @property
    def is_idle(self) -> bool:
        """Whether it is open and no frame is under way, in or out."""
        is_between = not self.unparsed and not self._parts and self.protocol.state is State.OPEN
        transport = self.transport
        return (
            is_between
            and not transport.is_closing()
            and not transport.get_write_buffer_size()
            and transport.is_reading()
        )

    def listen(self, received: Callable[[list[str]], None], writable: Callable[[], None]) -> None:
        self.received, self.writable = received, writable
        self._deliver()

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

    def _deliver(self) -> None:
        if self._messages and self.received is not None:
            messages, self._messages = self._messages, []
            self.received(messages)

    def _end_soon(self) -> None:
        if not self.over.is_set():
            self.over.set()
            # The peer has to close now, within the time for answering a close frame.
            self.loop.call_later(CLOSE_TIMEOUT_MS / 1000, self.transport.abort)


class WebSocketTransport:
    """
    One open WebSocket.

    It sends its own pings: the library's would end the connection when a pong is late, even while
    a long message arrives.
    """

    def __init__(self, connection: _Connection, ping_ms: float, silence_ms: float) -> None:
        self._connection = connection
        self._ping = ping_ms / 1000
        self._silence = silence_ms / 1000
        self.batch = connection.subprotocol == BATCH_PROTOCOL
        connection.heard = connection.loop.time()
        wire = connection.transport.get_extra_info("socket")
        is_plain = wire is not None and connection.transport.get_extra_info("ssl_object") is None
        self._fd: int | None = wire.fileno() if is_plain else None
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
            raise ConnectionLost(self._why())
        for frame in frames:
            if isinstance(frame, str):
                protocol.send_text(frame.encode())
            else:
                protocol.send_binary(frame)
        transport.write(b"".join(protocol.data_to_send()))

    def idle_fd(self) -> int | None:
        """Return the socket, if another thread can read and write whole frames there now."""
        return self._fd if self._connection.is_idle else None

    def note_input(self) -> None:
        """Note that the peer has sent something to another thread."""
        self._connection.heard = self._connection.loop.time()

    def resume(self, unsent: bytes, received: bytes) -> None:
        """Continue with what another thread has begun to send, and with what it received."""
        if unsent:
            self._connection.transport.write(unsent)
        if received:
            self._connection.loop.call_soon(self._connection.data_received, received)

    async def drain(self) -> None:
        """Wait until the connection is no longer full."""
        await self._connection.drained.wait()
        if self._connection.over.is_set():
            raise ConnectionLost(self._why())

    async def ended(self) -> str:
        """Wait until the connection has ended; returns why."""
        await self._connection.over.wait()
        self._end_tasks()
        return self._why()

    async def close(self) -> None:
        """Close with a close frame."""
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
                # In a task: it waits behind a full buffer, and silence must still be detected.
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


# Versions before 15 have no such argument. Workers dial directly, as in every SDK.
PROXY: dict[str, Any] = (
    {"proxy": None} if "proxy" in inspect.signature(connect.__init__).parameters else {}
)


def failure_text(error: BaseException) -> str:
    """Describe why a connection did not open."""
    if isinstance(error, ConnectionClosed):
        return _closed_by(error.rcvd or error.sent)
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return "no answer in time"
    return str(error) or type(error).__name__


def _frame_size(payload: int) -> int:
    """Return the size of a frame of a server."""
    return payload + (2 if payload < 126 else 4 if payload < 65536 else 10)


def _closed_by(closed: Close | None) -> str:
    return f"{closed.code} {closed.reason}".strip() if closed else "connection lost"


def with_tls_hint(failure: str) -> str:
    """Append a hint to the text of a failure that TLS caused."""
    for pattern, hint in _HINTS:
        if re.search(pattern, failure):
            missing = _missing_file() if pattern == "CERTIFICATE_VERIFY_FAILED" else None
            return f"{failure}; {missing or hint}"
    return failure


def _missing_file() -> str | None:
    """Describe a configured certificate file that cannot be read, which `ssl` ignores."""
    variable = ssl.get_default_verify_paths().openssl_cafile_env
    path = os.environ.get(variable)
    if not path or os.access(path, os.R_OK):
        return None
    return f"{variable} names {path}, which cannot be read"
