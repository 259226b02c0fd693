"""One WebSocket, byte by byte, against a server that says exactly what a test wants."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine_sdk import _websocket
from engine_sdk._transport import LineLost, Transport
from engine_sdk._websocket import WebSocketDial
from fakes import LIMIT_S

TEXT, BINARY, CONT, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10


def frame(opcode: int, payload: bytes, fin: bool = True) -> bytes:
    """Make a frame of the server: no mask."""
    size = len(payload)
    head = bytes([opcode | (0x80 if fin else 0)])
    if size < 126:
        return head + bytes([size]) + payload
    if size < 65_536:
        return head + b"\x7e" + size.to_bytes(2, "big") + payload
    return head + b"\x7f" + size.to_bytes(8, "big") + payload


class Peer:
    """The server's end of one line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def hear(self) -> tuple[int, bytes]:
        """Wait for one frame; returns its kind and what it carries."""
        first, second = await self.reader.readexactly(2)
        size = second & 0x7F
        assert second & 0x80, "frames of a client are masked"
        if size > 125:
            size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
        mask = await self.reader.readexactly(4)
        data = await self.reader.readexactly(size)
        return first & 0x0F, bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))


class Ears:
    """What came on a line."""

    def __init__(self, line: Transport) -> None:
        self.reads: list[list[str]] = []
        self.writable = 0
        self.changed = asyncio.Event()
        line.listen(self.heard, self.noted)

    def heard(self, frames: list[str]) -> None:
        self.reads.append(frames)
        self.changed.set()

    def noted(self) -> None:
        self.writable += 1
        self.changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async def look() -> None:
            while not holds():
                await self.changed.wait()
                self.changed.clear()

        await asyncio.wait_for(look(), LIMIT_S)

    @property
    def frames(self) -> list[str]:
        return [frame for read in self.reads for frame in read]


def on_a_line(
    test: Callable[[Transport, Peer], Awaitable[None]], after_upgrade: bytes = b""
) -> None:
    """Run a test on both ends of one line."""

    async def run() -> None:
        met: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()

        async def upgrade(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            key = next(
                line for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key")
            )
            magic = key.partition(": ")[2] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            accept = base64.b64encode(hashlib.sha1(magic.encode()).digest()).decode()
            writer.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Protocol: engine.batch.v1\r\n"
                + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
                + after_upgrade
            )
            met.set_result(Peer(reader, writer))

        server = await asyncio.start_server(upgrade, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        line = await WebSocketDial(f"ws://127.0.0.1:{port}")()
        peer = await met
        try:
            await asyncio.wait_for(test(line, peer), LIMIT_S)
        finally:
            peer.writer.transport.abort()
            await line.close()
            server.close()

    asyncio.run(run())


def test_messages_that_come_together_are_handed_over_together() -> None:
    async def test(line: Transport, peer: Peer) -> None:
        ears = Ears(line)
        peer.say(*(frame(TEXT, b"%d" % n) for n in range(100)))

        await ears.until(lambda: len(ears.frames) == 100)

        assert ears.frames == [str(n) for n in range(100)]
        assert len(ears.reads) < 10

    on_a_line(test)


def test_what_comes_right_behind_the_upgrade_is_kept_until_somebody_listens() -> None:
    async def test(line: Transport, peer: Peer) -> None:
        await asyncio.sleep(0.01)
        ears = Ears(line)

        await ears.until(lambda: len(ears.frames) == 2)

        assert ears.frames == ["first", "second"]

    on_a_line(test, frame(TEXT, b"first") + frame(TEXT, b"second"))


def test_a_message_in_parts_is_one_also_with_a_ping_between() -> None:
    async def test(line: Transport, peer: Peer) -> None:
        ears = Ears(line)
        whole = "żółć 🚀".encode()
        parts = [whole[i : i + 1] for i in range(len(whole))]
        peer.say(frame(TEXT, parts[0], fin=False), frame(PING, b"p"))
        peer.say(*(frame(CONT, part, fin=False) for part in parts[1:]), frame(CONT, b""))
        peer.say(frame(TEXT, b"", fin=False), frame(CONT, b"x"), frame(BINARY, b"\xff!"))

        await ears.until(lambda: len(ears.frames) == 3)

        assert ears.frames == ["żółć 🚀", "x", "\ufffd!"]
        assert await peer.hear() == (PONG, b"p")

    on_a_line(test)


@pytest.mark.parametrize("parts", [[b"\xff"], [b"a\xc5", b"a"]])
def test_text_that_is_no_utf_8_ends_the_line_with_1007(parts: list[bytes]) -> None:
    async def test(line: Transport, peer: Peer) -> None:
        ears = Ears(line)
        last = len(parts) - 1
        peer.say(frame(TEXT, b"good"))
        peer.say(*(frame(CONT if i else TEXT, p, i == last) for i, p in enumerate(parts)))
        peer.say(frame(TEXT, b"late"))

        kind, body = await peer.hear()

        assert (kind, int.from_bytes(body[:2], "big")) == (CLOSE, 1007)
        assert (await line.ended()).startswith("1007 ")
        assert ears.frames == ["good"]
        with pytest.raises(LineLost):
            line.write(["late"])

    on_a_line(test)


def test_a_peer_that_closes_but_leaves_the_socket_open_ends_the_line_at_once() -> None:
    async def test(line: Transport, peer: Peer) -> None:
        ears = Ears(line)
        peer.say(frame(TEXT, b"last words"), frame(CLOSE, b"\x03\xe9going away"))

        assert await line.ended() == "1001 going away"
        assert ears.frames == ["last words"]
        assert (await peer.hear())[0] == CLOSE

    on_a_line(test)


def test_a_message_that_is_too_large_ends_the_line_with_1009(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_websocket, "MESSAGE_BYTES_MAX", 1_000)
    monkeypatch.setattr(_websocket, "MESSAGE_SLACK_BYTES", 0)

    async def test(line: Transport, peer: Peer) -> None:
        ears = Ears(line)
        peer.say(frame(TEXT, b"x" * 1_000), frame(TEXT, b"x" * 600, fin=False))
        peer.say(frame(CONT, b"x" * 600))

        assert (await line.ended()).startswith("1009")
        assert len(ears.frames) == 1

    on_a_line(test)


class CountingTransport:
    """A transport of asyncio that counts how often it is written to."""

    def __init__(self, inner: asyncio.Transport) -> None:
        self._inner = inner
        self.writes = 0

    def write(self, data: bytes) -> None:
        self.writes += 1
        self._inner.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_frames_written_together_leave_in_one_piece() -> None:
    async def test(line: Any, peer: Peer) -> None:
        counting = CountingTransport(line._connection.transport)
        line._connection.transport = counting

        line.write([*(json.dumps({"n": n}) for n in range(50)), b"OTLP"])

        heard = [await peer.hear() for _ in range(51)]
        assert heard[49:] == [(TEXT, b'{"n": 49}'), (BINARY, b"OTLP")]
        assert counting.writes == 1

    on_a_line(test)


def test_a_peer_that_does_not_read_fills_the_line_until_it_does() -> None:
    async def test(line: Transport, peer: Peer) -> None:
        ears = Ears(line)
        text = "x" * 1_000_000
        sent = 0
        while not line.is_full:
            line.write([text])
            sent += 1
            await asyncio.sleep(0)
            assert sent < 1_000, "a line takes no end of bytes"

        async def read() -> None:
            for _ in range(sent):
                head = await peer.reader.readexactly(14)
                await peer.reader.readexactly(int.from_bytes(head[2:10], "big"))

        reading = asyncio.ensure_future(read())
        await line.drain()
        await ears.until(lambda: ears.writable == 1)

        assert not line.is_full
        await reading

    on_a_line(test)
