"""The line on real sockets: sizes, latency, headers, silence, loss."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import QUICK
from engine_sdk import InitOptions, InvocationError, ReconnectOptions, Worker, register_worker
from engine_sdk._transport import LineLost
from engine_sdk._websocket import WebSocketDial
from fakes import LIMIT_S

ENGINE = Path(__file__).parent / "real_engine.py"


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
    # A stall of delayed acknowledgements (40 ms) is there in every round; a machine that is
    # busy with something else slows down some of them.
    while min(medians) >= 0.005 and len(medians) < 40:
        times = []
        for _ in range(15):
            before = time.perf_counter()
            worker.trigger({"function_id": "echo", "payload": payload})
            times.append(time.perf_counter() - before)
        medians.append(statistics.median(times))

    assert min(medians) < 0.005


def test_a_worker_comes_back_after_a_line_was_cut(worker: Worker) -> None:
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


def test_a_port_nobody_listens_on_is_tried_until_somebody_does() -> None:
    async def refuse() -> None:
        await WebSocketDial("ws://127.0.0.1:1")()

    with pytest.raises(LineLost):
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
        line = await dial()
        await line.close()
        return line.batch

    try:
        assert asyncio.run(negotiate())
    finally:
        process.communicate()


def test_a_line_that_falls_silent_is_given_up() -> None:
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
        line = await WebSocketDial(f"ws://127.0.0.1:{port}", ping_ms=20, silence_ms=100)()
        assert await asyncio.wait_for(line.ended(), LIMIT_S) == "connection lost"
        assert [ping[0] for ping in pings] == [0x89]
        await line.close()
        server.close()

    pings: list[bytes] = []
    asyncio.run(fall_silent())


def test_a_line_on_which_nothing_but_pongs_come_is_kept(url: str) -> None:
    async def stay() -> None:
        address = url.replace("http", "ws")
        line = await WebSocketDial(address, ping_ms=10, silence_ms=2_000)()
        came: asyncio.Queue[str] = asyncio.Queue()
        line.listen(lambda frames: came.put_nowait("".join(frames)), lambda: None)
        assert "workerregistered" in await asyncio.wait_for(came.get(), LIMIT_S)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(came.get(), 0.2)
        line.write(['{"type":"invokefunction","invocation_id":"1","function_id":"echo"}'])
        assert "invocationresult" in await asyncio.wait_for(came.get(), LIMIT_S)
        await line.close()
        with pytest.raises(LineLost):
            line.write(["late"])
        with pytest.raises(LineLost):
            await line.drain()

    asyncio.run(stay())


def test_proxies_of_the_environment_are_not_used(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setitem(os.environ, "ENGINE_URL", url)

    with register_worker() as worker:
        assert worker.trigger({"function_id": "echo", "payload": 1}) == 1
