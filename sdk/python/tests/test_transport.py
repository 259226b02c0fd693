"""Connections on real sockets: sizes, latency, headers, silence, loss; hints about TLS."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import QUICK
from engine_sdk import (
    InitOptions,
    InvocationError,
    ReconnectOptions,
    Worker,
    _transport,
    register_worker,
)
from engine_sdk._transport import (
    ConnectionLost,
    Transport,
    WebSocketDial,
    WebSocketTransport,
    with_tls_hint,
)
from fakes import LIMIT_S

ENGINE = Path(__file__).parent / "real_engine.py"
STALL_S = 0.03
"""Below the 40 ms of a delayed acknowledgement, above what a busy machine takes at best."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(ENGINE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    process.communicate()


@pytest.fixture
def worker(url: str) -> Iterator[Worker]:
    with register_worker(url, InitOptions(reconnect=QUICK)) as worker:
        yield worker


def test_a_message_of_8_mib_goes_there_and_back(worker: Worker) -> None:
    payload = "ab" * (4 * 1024 * 1024)

    assert worker.trigger({"function_id": "echo", "payload": payload}) == payload


@pytest.mark.parametrize("size", [100, 1_000, 10_000, 100_000])
def test_no_size_of_message_stalls(worker: Worker, size: int) -> None:
    payload, medians = "x" * size, [1.0]
    # A stall of delayed acknowledgements (40 ms) affects every round; a busy machine only some.
    while min(medians) >= STALL_S and len(medians) < 40:
        times = []
        for _ in range(15):
            before = time.perf_counter()
            worker.trigger({"function_id": "echo", "payload": payload})
            times.append(time.perf_counter() - before)
        medians.append(statistics.median(times))

    assert min(medians) < STALL_S


def test_a_worker_reconnects_after_its_connection_was_cut(worker: Worker) -> None:
    states: list[str] = []
    back = threading.Event()

    def listen(state: str) -> None:
        states.append(state)
        if state == "connected":
            back.set()

    worker.on_connection_state(listen)
    with pytest.raises(InvocationError, match="invocation_stopped"):
        worker.trigger({"function_id": "drop"})

    assert back.wait(LIMIT_S)
    assert states == ["reconnecting", "connected"]
    assert worker.trigger({"function_id": "echo", "payload": 1}) == 1


def test_token_headers_and_launch_id_go_with_the_upgrade(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE_LAUNCH_ID", "launch-7")
    options = InitOptions(token="secret", headers={"X-Team": "shop"})

    with register_worker(url, options) as worker:
        headers = worker.trigger({"function_id": "headers"})

    lower = {name.lower(): value for name, value in headers.items()}
    assert lower["authorization"] == "Bearer secret"
    assert lower["x-engine-launch-id"] == "launch-7"
    assert lower["x-team"] == "shop"
    assert lower["sec-websocket-protocol"] == "engine.batch.v1"
    assert "sec-websocket-extensions" not in lower


def test_a_refused_upgrade_is_tried_again_and_named(url: str) -> None:
    reconnect = ReconnectOptions(first_ms=1, max_ms=1, max_attempts=2)

    with (
        register_worker(f"{url}/refused", InitOptions(reconnect=reconnect)) as worker,
        pytest.raises(InvocationError, match="after 2 attempts: HTTP 401"),
    ):
        worker.trigger({"function_id": "echo"})


def test_a_closed_port_is_dialled_until_it_opens() -> None:
    async def refuse() -> None:
        await WebSocketDial("ws://127.0.0.1:1")()

    with pytest.raises(ConnectionLost):
        asyncio.run(refuse())


def test_messages_share_frames_with_an_engine_that_wants_it() -> None:
    process = subprocess.Popen(
        [sys.executable, str(ENGINE), "batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    dial = WebSocketDial(f"ws://127.0.0.1:{port}")

    async def negotiate() -> bool:
        transport = await dial()
        await transport.close()
        return transport.batch

    try:
        assert asyncio.run(negotiate())
    finally:
        process.communicate()


def test_a_silent_connection_is_closed() -> None:
    async def upgrade(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(
            line for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key")
        )
        magic = key.partition(": ")[2] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(magic.encode()).digest()).decode()
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        pings.append(await reader.readexactly(6))
        await reader.read()  # Pongs never come.
        writer.close()

    async def fall_silent() -> None:
        server = await asyncio.start_server(upgrade, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = await WebSocketDial(f"ws://127.0.0.1:{port}", ping_ms=20, silence_ms=100)()
        assert await asyncio.wait_for(transport.ended(), LIMIT_S) == "connection lost"
        assert [ping[0] for ping in pings] == [0x89]
        await transport.close()
        server.close()

    pings: list[bytes] = []
    asyncio.run(fall_silent())


def test_a_connection_with_only_pongs_is_kept(url: str) -> None:
    async def stay() -> None:
        address = url.replace("http", "ws")
        transport = await WebSocketDial(address, ping_ms=10, silence_ms=2_000)()
        came: asyncio.Queue[str] = asyncio.Queue()
        transport.listen(lambda frames: came.put_nowait("".join(frames)), lambda: None)
        assert "workerregistered" in await asyncio.wait_for(came.get(), LIMIT_S)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(came.get(), 0.2)
        transport.write(['{"type":"invokefunction","invocation_id":"1","function_id":"echo"}'])
        assert "invocationresult" in await asyncio.wait_for(came.get(), LIMIT_S)
        await transport.close()
        with pytest.raises(ConnectionLost):
            transport.write(["late"])
        with pytest.raises(ConnectionLost):
            await transport.drain()

    asyncio.run(stay())


def test_proxies_of_the_environment_are_not_used(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setitem(os.environ, "ENGINE_URL", url)

    with register_worker() as worker:
        assert worker.trigger({"function_id": "echo", "payload": 1}) == 1


TEXT, BINARY, CONT, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10


def frame(opcode: int, payload: bytes, fin: bool = True) -> bytes:
    """Return a frame of the server, without a mask."""
    size = len(payload)
    head = bytes([opcode | (0x80 if fin else 0)])
    if size < 126:
        return head + bytes([size]) + payload
    if size < 65_536:
        return head + b"\x7e" + size.to_bytes(2, "big") + payload
    return head + b"\x7f" + size.to_bytes(8, "big") + payload


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def hear(self) -> tuple[int, bytes]:
        """Wait for one frame; returns its opcode and payload."""
        first, second = await self.reader.readexactly(2)
        size = second & 0x7F
        assert second & 0x80, "frames of a client are masked"
        if size > 125:
            size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
        mask = await self.reader.readexactly(4)
        data = await self.reader.readexactly(size)
        return first & 0x0F, bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))


class Received:
    """What a transport delivers."""

    def __init__(self, transport: Transport) -> None:
        self.reads: list[list[str]] = []
        self.writable = 0
        self.changed = asyncio.Event()
        transport.listen(self.heard, self.noted)

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


def connected_to(
    test: Callable[[Transport, Peer], Awaitable[None]], after_upgrade: bytes = b""
) -> None:
    """Run a test on both ends of one connection."""

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
        transport = await WebSocketDial(f"ws://127.0.0.1:{port}")()
        peer = await met
        try:
            await asyncio.wait_for(test(transport, peer), LIMIT_S)
        finally:
            peer.writer.transport.abort()
            await transport.close()
            server.close()

    asyncio.run(run())


def test_messages_that_arrive_together_are_delivered_together() -> None:
    async def test(transport: Transport, peer: Peer) -> None:
        received = Received(transport)
        peer.say(*(frame(TEXT, b"%d" % n) for n in range(100)))

        await received.until(lambda: len(received.frames) == 100)

        assert received.frames == [str(n) for n in range(100)]
        assert len(received.reads) < 10

    connected_to(test)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_another_thread_can_use_the_socket_only_between_frames(size: int) -> None:
    async def test(transport: Transport, peer: Peer) -> None:
        assert isinstance(transport, WebSocketTransport)
        read = transport._connection.data_received
        assert transport.idle_fd() is None
        read(whole[1:])
        assert transport.idle_fd() is not None
        for at in {*range(1, min(len(whole), 12)), len(whole) - 1}:
            read(whole[:at])
            assert transport.idle_fd() is None
            read(whole[at:] + frame(PING, b"p")[:1])
            assert transport.idle_fd() is None
            read(frame(PING, b"p")[1:])
            assert transport.idle_fd() is not None

    whole = frame(TEXT, b"x" * size)
    connected_to(test, whole[:1])


def test_what_arrives_right_after_the_upgrade_is_kept_until_listen() -> None:
    async def test(transport: Transport, peer: Peer) -> None:
        await asyncio.sleep(0.01)
        received = Received(transport)

        await received.until(lambda: len(received.frames) == 2)

        assert received.frames == ["first", "second"]

    connected_to(test, frame(TEXT, b"first") + frame(TEXT, b"second"))


def test_a_message_in_parts_is_one_also_with_a_ping_between() -> None:
    async def test(transport: Transport, peer: Peer) -> None:
        received = Received(transport)
        whole = "żółć 🚀".encode()
        parts = [whole[i : i + 1] for i in range(len(whole))]
        peer.say(frame(TEXT, parts[0], fin=False), frame(PING, b"p"))
        peer.say(*(frame(CONT, part, fin=False) for part in parts[1:]), frame(CONT, b""))
        peer.say(frame(TEXT, b"", fin=False), frame(CONT, b"x"), frame(BINARY, b"\xff!"))

        await received.until(lambda: len(received.frames) == 3)

        assert received.frames == ["żółć 🚀", "x", "\ufffd!"]
        assert await peer.hear() == (PONG, b"p")

    connected_to(test)


@pytest.mark.parametrize("parts", [[b"\xff"], [b"a\xc5", b"a"]])
def test_text_that_is_not_utf_8_ends_the_connection_with_1007(parts: list[bytes]) -> None:
    async def test(transport: Transport, peer: Peer) -> None:
        received = Received(transport)
        last = len(parts) - 1
        peer.say(frame(TEXT, b"good"))
        peer.say(*(frame(CONT if i else TEXT, p, i == last) for i, p in enumerate(parts)))
        peer.say(frame(TEXT, b"late"))

        kind, body = await peer.hear()

        assert (kind, int.from_bytes(body[:2], "big")) == (CLOSE, 1007)
        assert (await transport.ended()).startswith("1007 ")
        assert received.frames == ["good"]
        with pytest.raises(ConnectionLost):
            transport.write(["late"])

    connected_to(test)


def test_a_peer_that_closes_but_leaves_the_socket_open_ends_the_connection_at_once() -> None:
    async def test(transport: Transport, peer: Peer) -> None:
        received = Received(transport)
        peer.say(frame(TEXT, b"last words"), frame(CLOSE, b"\x03\xe9going away"))

        assert await transport.ended() == "1001 going away"
        assert received.frames == ["last words"]
        assert (await peer.hear())[0] == CLOSE

    connected_to(test)


def test_a_message_that_is_too_large_ends_the_connection_with_1009(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_transport, "INBOUND_BYTES_MAX", 1_000)

    async def test(transport: Transport, peer: Peer) -> None:
        received = Received(transport)
        peer.say(frame(TEXT, b"x" * 1_000), frame(TEXT, b"x" * 600, fin=False))
        peer.say(frame(CONT, b"x" * 600))

        assert (await transport.ended()).startswith("1009")
        assert len(received.frames) == 1

    connected_to(test)


def test_the_size_of_a_message_is_known_and_bounded_before_it_arrives() -> None:
    for excess in (0, 1):
        claimed = _transport.INBOUND_BYTES_MAX + excess

        async def test(transport: Transport, peer: Peer, claimed: int = claimed) -> None:
            Received(transport)
            peer.say(bytes([0x81]) + b"\x7f" + claimed.to_bytes(8, "big") + b"x")
            if claimed == _transport.INBOUND_BYTES_MAX:
                peer.writer.close()  # Or it would wait for the rest.

            end = await transport.ended()

            assert end.startswith("1009") == (claimed > 256 * 1024 * 1024), end

        connected_to(test)


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
    async def test(transport: Any, peer: Peer) -> None:
        counting = CountingTransport(transport._connection.transport)
        transport._connection.transport = counting

        transport.write([*(json.dumps({"n": n}) for n in range(50)), b"OTLP"])

        heard = [await peer.hear() for _ in range(51)]
        assert heard[49:] == [(TEXT, b'{"n": 49}'), (BINARY, b"OTLP")]
        assert counting.writes == 1

    connected_to(test)


def test_a_peer_that_does_not_read_fills_the_transport_until_it_does() -> None:
    async def test(transport: Transport, peer: Peer) -> None:
        received = Received(transport)
        text = "x" * 1_000_000
        sent = 0
        while not transport.is_full:
            transport.write([text])
            sent += 1
            await asyncio.sleep(0)
            assert sent < 1_000, "the transport never becomes full"

        async def read() -> None:
            for _ in range(sent):
                head = await peer.reader.readexactly(14)
                await peer.reader.readexactly(int.from_bytes(head[2:10], "big"))

        reading = asyncio.ensure_future(read())
        await transport.drain()
        await received.until(lambda: received.writable == 1)

        assert not transport.is_full
        await reading

    connected_to(test)


VERIFY = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        (
            "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)",
            "does not use TLS; dial",
        ),
        ("HTTP 426", "may use TLS; dial wss://"),
        ("did not receive a valid HTTP response", "may use TLS; dial wss://"),
        (
            VERIFY + "Hostname mismatch, certificate is not valid for 'localhost'.",
            "another host name",
        ),
        (VERIFY + "certificate has expired (_ssl.c:1006)", "has expired, or is not valid yet"),
        (VERIFY + "unable to get local issuer certificate", "name the PEM file of its CA"),
    ],
)
def test_failures_of_tls_have_a_hint(reason: str, hint: str) -> None:
    said = with_tls_hint(reason)

    assert said.startswith(f"{reason}; ")
    assert hint in said


@pytest.mark.parametrize("reason", ["HTTP 401", "[Errno 111] Connect call failed", ""])
def test_other_failures_are_left_as_they_are(reason: str) -> None:
    assert with_tls_hint(reason) == reason


def test_a_file_of_certificates_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reason = VERIFY + "unable to get local issuer certificate"

    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    assert with_tls_hint(reason) == (
        f"{reason}; SSL_CERT_FILE names /nowhere/ca.pem, which cannot be read"
    )
    assert "another host name" in with_tls_hint(VERIFY + "Hostname mismatch")

    there = tmp_path / "ca.pem"
    there.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(there))
    assert "name the PEM file of its CA" in with_tls_hint(reason)
