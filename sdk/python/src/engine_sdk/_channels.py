"""
Channels: streams of bytes and text messages between two workers.

Both ends live on the worker's loop. Threads wait for it, and other loops await it, so the same end
can be used in handlers of both kinds; every method has a form for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ._channel_socket import (
    CLOSE_ABORTED,
    CLOSE_CLAIMED,
    CLOSE_COMPLETE,
    CLOSE_NO_CODE,
    READER_CLOSED,
    STREAM_COMPLETE,
    ChannelSocket,
    Message,
    channel_url,
    open_socket,
)
from ._errors import EngineError, invalid
from ._session import SHUTDOWN
from ._threads import PoolThread

CREATE_CHANNEL: Final = "engine::channels::create"
WRITE_BYTES: Final = 64 * 1024
"""Size into which written bytes are cut."""

COLLECTED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Default limit of `ChannelReader.read_all`."""

LEVELS_MAX: Final = 129
Result = TypeVar("Result")


class ChannelHost:
    """The loop on which the ends of one worker live."""

    def __init__(self, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self._loop = loop
        self._thread: threading.Thread | None = None
        self._sockets: set[ChannelSocket] = set()
        self._ended = False

    def begin(self) -> None:
        """Remember the thread of the loop; called in it."""
        self._thread = threading.current_thread()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work on the loop and wait for it, in any other thread."""
        here = threading.current_thread()
        if here is self._thread:
            work.close()
            raise invalid("This would block the loop it waits for; await the _async form")
        future = self._submit(work)
        try:
            with here.pool.waiting() if isinstance(here, PoolThread) else contextlib.nullcontext():
                return future.result()
        except CancelledError:
            raise _shutdown() from None
        except BaseException:
            future.cancel()
            raise

    async def run_async(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work on the loop, from any loop."""
        if threading.current_thread() is self._thread:
            return await work
        return await asyncio.wrap_future(self._submit(work))

    async def connect(self, ref: dict[str, str]) -> ChannelSocket:
        """Connect to an end; on the loop."""
        if self._ended:
            raise _shutdown()
        socket = await open_socket(channel_url(self.url, **ref), ref["channel_id"])
        self._sockets.add(socket)
        socket.when_lost(lambda: self.forget(socket))
        return socket

    def forget(self, socket: ChannelSocket) -> None:
        """Forget an end that is over."""
        self._sockets.discard(socket)

    def close(self) -> None:
        """End all connections; on the loop."""
        self._ended = True
        for socket in list(self._sockets):
            socket.abort()
        self._sockets.clear()

    @property
    def is_ended(self) -> bool:
        """Whether the worker shuts down."""
        return self._ended

    def _submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise _shutdown() from None

    def revive(self, value: Any) -> Any:
        """Replace references in a decoded value, which is changed, by ends."""
        return self._revive(value, LEVELS_MAX)

    def end(self, ref: dict[str, Any]) -> ChannelReader | ChannelWriter:
        """Return the end of a reference; it connects when it is used."""
        return (ChannelReader if ref["direction"] == "read" else ChannelWriter)(self, ref)

    def _revive(self, value: Any, levels: int) -> Any:
        if levels == 0:
            return value
        if isinstance(value, dict):
            if is_reference(value):
                return self.end(value)
            for key, part in value.items():
                value[key] = self._revive(part, levels - 1)
        elif isinstance(value, list):
            value[:] = [self._revive(part, levels - 1) for part in value]
        return value


def is_reference(value: dict[str, Any]) -> bool:
    """Whether an object of a payload is a reference to the end of a channel."""
    return (
        isinstance(value.get("channel_id"), str)
        and isinstance(value.get("access_key"), str)
        and value.get("direction") in ("read", "write")
    )


def _shutdown() -> EngineError:
    return EngineError(SHUTDOWN["code"], SHUTDOWN["message"])


class _End:
    """What both ends have in common: one connection, which opens at the first use."""

    def __init__(self, host: ChannelHost, ref: dict[str, Any]) -> None:
        self._host = host
        self._ref = {key: ref[key] for key in ("channel_id", "access_key", "direction")}
        self._socket: ChannelSocket | None = None
        self._error: EngineError | None = None
        self._opening: asyncio.Task[ChannelSocket] | None = None

    @property
    def ref(self) -> dict[str, str]:
        """The reference to this end, as it travels in payloads."""
        return dict(self._ref)

    def __engine_json__(self) -> dict[str, str]:
        return self.ref

    async def _connected(self) -> ChannelSocket:
        if self._socket is None:
            if self._opening is None:
                self._opening = asyncio.ensure_future(self._host.connect(self._ref))
            try:
                self._socket = await asyncio.shield(self._opening)
            except EngineError as error:
                self._error = error
                raise
        return self._socket

    def _ending(self, socket: ChannelSocket) -> EngineError | None:
        """Return the error of a connection that has ended; None: it ended as it should."""
        code, reason = socket.closed_with()
        channel_id = self._ref["channel_id"]
        details = {"channel_id": channel_id, "close_code": code, "reason": reason}
        if self._host.is_ended:
            return _shutdown()
        if code == CLOSE_CLAIMED:
            text = f"This end of channel {channel_id} is in use already"
            return EngineError("channel_not_found", text, details)
        if code not in (CLOSE_COMPLETE, CLOSE_NO_CODE):
            text = f"Channel {channel_id} ended early: {reason or f'close code {code}'}"
            return EngineError("channel_closed", text, details)
        if reason == READER_CLOSED:
            text = f"The reader of channel {channel_id} has left"
            return EngineError("channel_closed", text, details)
        return None


class ChannelReader(_End):
    """
    The reading end of a channel: iterates over what the writer sends, bytes and text messages.

    A handler finds one wherever the payload holds a reference; inside the payload of a call or a
    result it becomes a reference again. It connects when it is first read; only one reader can.
    Ordinary functions iterate with ``for``, coroutines with ``async for``.

    Reading raises `EngineError` ``channel_closed`` if the stream is not whole, because the writer
    gave up or was lost; ``channel_not_found`` if the reference is unknown or was used already;
    ``engine_unreachable`` if the engine cannot be reached.

    Example:
        def size(payload):
            return sum(len(part) for part in payload["file"])

    """

    __module__ = "engine_sdk"

    def receive(self) -> bytes | str | None:
        """Wait for the next message; None at the end of the stream."""
        return self._host.run(self._receive())

    async def receive_async(self) -> bytes | str | None:
        """Wait for the next message; None at the end of the stream."""
        return await self._host.run_async(self._receive())

    def read_all(self, max_bytes: int = COLLECTED_BYTES_MAX) -> bytes:
        """
        Read everything as bytes; text messages are encoded as UTF-8.

        Raises:
            EngineError: ``body_too_large`` beyond ``max_bytes``, by default 64 MiB.

        """
        return self._host.run(self._read_all(max_bytes))

    async def read_all_async(self, max_bytes: int = COLLECTED_BYTES_MAX) -> bytes:
        """Read everything as bytes, as `read_all`."""
        return await self._host.run_async(self._read_all(max_bytes))

    def as_file(self, buffer_size: int = WRITE_BYTES) -> io.BufferedReader:
        """
        Return the stream as a binary file, for code that reads files; closing it cancels.

        Example:
            for line in payload["file"].as_file():
                ...

        """
        return io.BufferedReader(_ReadFile(self), buffer_size)

    def cancel(self) -> None:
        """End the channel: the writer learns that nothing more is read."""
        self._host.run(self._cancel())

    async def cancel_async(self) -> None:
        """End the channel: the writer learns that nothing more is read."""
        await self._host.run_async(self._cancel())

    def __iter__(self) -> Iterator[bytes | str]:
        """Iterate over the messages; leaving the loop early does not cancel, `cancel` does."""
        while (message := self.receive()) is not None:
            yield message

    async def __aiter__(self) -> AsyncIterator[bytes | str]:
        """Iterate over the messages; leaving the loop early does not cancel, `cancel` does."""
        while (message := await self.receive_async()) is not None:
            yield message

    async def _receive(self) -> Message | None:
        if self._error is not None:
            raise self._error
        socket = await self._connected()
        message = await socket.receive()
        if message is None:
            self._error = self._ending(socket)
            if self._error is not None:
                raise self._error
        return message

    async def _read_all(self, max_bytes: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while (message := await self._receive()) is not None:
            part = message.encode() if isinstance(message, str) else message
            size += len(part)
            if size > max_bytes:
                await self._cancel()
                text = f"Channel {self._ref['channel_id']} carries over {max_bytes} bytes"
                raise EngineError("body_too_large", text)
            parts.append(part)
        return b"".join(parts)

    async def _cancel(self) -> None:
        with contextlib.suppress(EngineError):
            socket = await self._connected()
            self._host.forget(socket)
            socket.abort()
        text = f"Channel {self._ref['channel_id']} was cancelled here"
        self._error = self._error or EngineError("channel_closed", text)


class ChannelWriter(_End):
    """
    The writing end of a channel: sends bytes and text messages to the reader.

    A handler finds one wherever the payload holds a reference; inside the payload of a call or a
    result it becomes a reference again. It connects at the first write; only one writer can. As a
    context manager, ``with`` or ``async with``, it closes at the end of the block, and aborts if
    the block raises.

    Writing raises `EngineError` ``channel_closed`` once the reader has left;
    ``channel_not_found`` and ``engine_unreachable`` as for `ChannelReader`.

    Example:
        def count(payload):
            with payload["out"] as out:
                for number in range(payload["to"]):
                    out.write(f"number {number}")

    """

    __module__ = "engine_sdk"

    def __init__(self, host: ChannelHost, ref: dict[str, Any]) -> None:
        super().__init__(host, ref)
        self._order = asyncio.Lock()
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview | str) -> None:
        """
        Send bytes, or a string as one text message; returns when more may be written.

        Raises:
            EngineError: ``channel_closed``, ``channel_not_found``, ``engine_unreachable``,
                ``INVALID_ARGUMENTS``.

        """
        self._host.run(self._write(_checked(data)))

    async def write_async(self, data: bytes | bytearray | memoryview | str) -> None:
        """Send bytes, or a string as one text message, as `write`."""
        await self._host.run_async(self._write(_checked(data)))

    def close(self) -> None:
        """End the stream; returns when the engine has all of it. No effect the second time."""
        self._host.run(self._close())

    async def close_async(self) -> None:
        """End the stream; returns when the engine has all of it. No effect the second time."""
        await self._host.run_async(self._close())

    def abort(self, reason: str = "the writer gave up") -> None:
        """Give up: the reader gets what was sent, then an error with the reason."""
        self._host.run(self._abort(reason))

    async def abort_async(self, reason: str = "the writer gave up") -> None:
        """Give up: the reader gets what was sent, then an error with the reason."""
        await self._host.run_async(self._abort(reason))

    @property
    def is_closing(self) -> bool:
        """Whether nothing more is written."""
        return self._is_closing

    async def left(self) -> None:
        """Wait until the reader has left; on the worker's loop."""
        with contextlib.suppress(EngineError):
            await (await self._connected()).ended()

    def as_file(self, buffer_size: int = WRITE_BYTES) -> io.BufferedWriter:
        """Return the stream as a binary file, for code that writes files; close it at the end."""
        return io.BufferedWriter(_WriteFile(self), buffer_size)

    def __enter__(self) -> ChannelWriter:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        self.close() if error is None else self.abort(f"{type(error).__name__}: {error}")

    async def __aenter__(self) -> ChannelWriter:
        return self

    async def __aexit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            await self.close_async()
        else:
            await self.abort_async(f"{type(error).__name__}: {error}")

    async def _write(self, data: Message) -> None:
        if self._is_closing:
            raise invalid("The writer is closed")
        async with self._order:
            socket = await self._writable()
            if isinstance(data, str) or len(data) <= WRITE_BYTES:
                await socket.send(data)
            else:
                view = memoryview(data)
                for at in range(0, len(view), WRITE_BYTES):
                    await socket.send(bytes(view[at : at + WRITE_BYTES]))
                    if socket.is_over:
                        break
            self._check(socket)

    async def _close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        async with self._order:
            socket = await self._writable()
            await socket.finish(CLOSE_COMPLETE, STREAM_COMPLETE)
            error = self._ending(socket)
            if error is not None:
                self._error = error
                raise error

    async def _abort(self, reason: str) -> None:
        self._is_closing = True
        with contextlib.suppress(EngineError):
            socket = await self._connected()
            if not socket.is_over:
                text = f"Channel {self._ref['channel_id']} was aborted: {reason}"
                self._error = EngineError("channel_closed", text)
                # In the background: the reader may be slow.
                task = asyncio.ensure_future(socket.finish(CLOSE_ABORTED, reason))
                task.add_done_callback(lambda _: self._host.forget(socket))
                await asyncio.sleep(0)

    async def _writable(self) -> ChannelSocket:
        if self._error is not None:
            raise self._error
        socket = await self._connected()
        self._check(socket)
        return socket

    def _check(self, socket: ChannelSocket) -> None:
        if self._error is None and socket.is_over:
            text = f"Channel {self._ref['channel_id']} was closed by the engine"
            self._error = self._ending(socket) or EngineError("channel_closed", text)
        if self._error is not None:
            raise self._error


def _checked(data: Any) -> Message:
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data)
    raise invalid(f"A channel carries bytes and strings, not {type(data).__name__}")


class _ReadFile(io.RawIOBase):
    """A reader as an unbuffered file."""

    def __init__(self, reader: ChannelReader) -> None:
        self._reader = reader
        self._rest = memoryview(b"")
        self._is_at_end = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        while len(self._rest) == 0 and not self._is_at_end and len(target) > 0:
            message = self._reader.receive()
            if message is None:
                self._is_at_end = True
            else:
                data = message.encode() if isinstance(message, str) else message
                self._rest = memoryview(data)
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        if not self.closed and not self._is_at_end:
            self._reader.cancel()
        super().close()


class _WriteFile(io.RawIOBase):
    """A writer as an unbuffered file."""

    def __init__(self, writer: ChannelWriter) -> None:
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(memoryview(data).cast("B"))
        self._writer.write(part)
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._writer.close()
        super().close()


@dataclass(frozen=True)
class Channel:
    """
    Both ends of a channel, of which one is usually passed to another worker.

    Attributes:
        writer: The end that sends.
        reader: The end that receives.

    """

    writer: ChannelWriter
    reader: ChannelReader


def channel_of(host: ChannelHost, refs: Any) -> Channel:
    """Return the ends of a channel that the engine has created."""
    ends = [refs[key] for key in ("writer", "reader")]
    writer, reader = (host.end(end.ref if isinstance(end, _End) else end) for end in ends)
    assert isinstance(writer, ChannelWriter)
    assert isinstance(reader, ChannelReader)
    return Channel(writer, reader)
