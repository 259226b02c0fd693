"""Channels over real sockets: in threads, on the worker's loop and on others."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from channel_engine import ChannelEngine
from engine_sdk import Channel, ChannelReader, ChannelWriter, EngineError, InitOptions, Worker
from engine_sdk._channel_socket import channel_url, short_reason
from engine_sdk._channels import is_reference
from fakes import LIMIT_S, FakeEngine

CLOSE_TIMEOUT_S = 9
"""Less than the server waits for the other side of a close, before it drops the connection."""


def ref(direction: str, channel_id: str = "c0", key: str = "key") -> dict[str, str]:
    return {"channel_id": channel_id, "access_key": key, "direction": direction}


@pytest.fixture
def sockets() -> Iterator[ChannelEngine]:
    server = ChannelEngine()
    yield server
    server.close()


@pytest.fixture
def worker(engine: FakeEngine, sockets: ChannelEngine) -> Iterator[Worker]:
    """A worker that calls a fake engine in memory, and channels on real sockets."""
    with Worker(sockets.url, InitOptions(worker_name="tester"), engine.dial) as worker:
        worker.start()
        made = iter(range(1_000))

        def create(_: Any) -> Any:
            id_ = f"c{next(made)}"
            return {"writer": ref("write", id_), "reader": ref("read", id_)}

        worker.register_function("engine::channels::create", create)
        yield worker


@pytest.fixture
def channel(worker: Worker) -> Channel:
    return worker.create_channel()


def in_thread(run: Callable[[], Any]) -> Callable[[], Any]:
    """Start a function in a thread; the result waits for it and returns or raises as it did."""
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append((run(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def wait() -> Any:
        thread.join(LIMIT_S)
        assert outcome, "the thread hangs"
        result, error = outcome[0]
        if error is not None:
            raise error
        return result

    return wait


def test_threads_write_and_read_text_and_bytes_in_order(channel: Channel) -> None:
    def write() -> None:
        with channel.writer as writer:
            writer.write("é")
            writer.write(b"\x00\x01")
            writer.write(bytearray(b"x" * 150_000))

    wait = in_thread(write)

    parts = list(channel.reader)
    wait()
    assert parts[:2] == ["é", b"\x00\x01"]
    assert [len(part) for part in parts[2:]] == [65_536, 65_536, 18_928]
    assert channel.reader.receive() is None


def test_coroutines_on_the_workers_loop_and_on_another_use_the_same_ends(worker: Worker) -> None:
    channel = worker.create_channel()

    async def produce(payload: Any) -> Any:
        async with payload["out"] as out:
            for number in range(payload["count"]):
                await out.write_async(f"{number}")
        return "done"

    worker.register_function("numbers::produce", produce)

    async def run() -> tuple[Any, list[Any]]:
        reader = asyncio.ensure_future(collect())
        request: Any = {
            "function_id": "numbers::produce",
            "payload": {"count": 20, "out": channel.writer},
        }
        return await worker.trigger_async(request), await reader

    async def collect() -> list[Any]:
        return [part async for part in channel.reader]

    result, parts = asyncio.run(asyncio.wait_for(run(), LIMIT_S))

    assert result == "done"
    assert parts == [str(number) for number in range(20)]


def test_a_reference_in_a_payload_is_an_end_and_in_a_result_a_reference(
    worker: Worker, engine: FakeEngine
) -> None:
    seen: list[Any] = []

    def handler(payload: Any) -> Any:
        seen.append(payload)
        return payload["list"][0]

    worker.register_function("a::b", handler)
    reader = worker.create_channel().reader

    result = worker.trigger(
        {"function_id": "a::b", "payload": {"list": [reader], "more": {"w": ref("write")}}}
    )

    assert isinstance(seen[0]["list"][0], ChannelReader)
    assert isinstance(seen[0]["more"]["w"], ChannelWriter)
    assert isinstance(result, ChannelReader)
    assert result.ref == reader.ref == ref("read")
    assert engine.of_type("invocationresult")[-1]["result"] == ref("read")


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"channel_id": "c", "access_key": "k"},
        {"channel_id": 5, "access_key": "k", "direction": "read"},
        {"channel_id": "c", "access_key": "k", "direction": "both"},
    ],
)
def test_other_objects_are_no_references(value: dict[str, Any]) -> None:
    assert not is_reference(value)


def test_read_all_collects_up_to_a_limit(worker: Worker) -> None:
    def fill(channel: Channel) -> Callable[[], Any]:
        def write() -> None:
            with channel.writer as writer:
                writer.write("é")
                writer.write(b"!")

        return in_thread(write)

    one, two = worker.create_channel(), worker.create_channel()
    waits = [fill(one), fill(two)]

    assert one.reader.read_all() == "é!".encode()
    with pytest.raises(EngineError, match="carries over 2 bytes") as raised:
        asyncio.run(two.reader.read_all_async(2))
    assert raised.value.code == "body_too_large"
    for wait in waits:
        try:
            wait()
        except EngineError as error:
            assert error.code == "channel_closed"  # noqa: PT017 - the writer may be done before


def test_both_ends_are_files(channel: Channel) -> None:
    def write() -> None:
        with channel.writer.as_file() as file:
            for number in range(10_000):
                file.write(b"%d\n" % number)

    wait = in_thread(write)

    with channel.reader.as_file() as file:
        lines = [int(line) for line in file]
    wait()
    assert lines == list(range(10_000))


def test_a_slow_reader_holds_the_writer_back(channel: Channel) -> None:
    part = b"x" * 65_536
    total = 2_048
    written = 0

    def write() -> None:
        nonlocal written
        with channel.writer as writer:
            for _ in range(total):
                writer.write(part)
                written += 1

    wait = in_thread(write)
    assert channel.reader.receive() == part
    last = -1
    end = time.monotonic() + LIMIT_S
    while last != written:
        assert time.monotonic() < end
        last = written
        time.sleep(0.3)

    assert written < total
    assert sum(1 for _ in channel.reader) == total - 1
    wait()


def test_writing_fails_at_the_close_frame_of_an_engine_that_reads_no_more(
    channel: Channel, sockets: ChannelEngine
) -> None:
    sockets.reads_on = False
    channel.writer.write("first")
    assert channel.reader.receive() == "first"
    channel.reader.cancel()

    def write() -> None:
        while True:
            channel.writer.write(b"x" * 16_384)

    began = time.monotonic()
    with pytest.raises(EngineError, match="The reader of channel c0 has left"):
        in_thread(write)()
    assert time.monotonic() - began < CLOSE_TIMEOUT_S


def test_when_the_reader_leaves_writing_fails(channel: Channel) -> None:
    channel.writer.write("first")
    assert channel.reader.receive() == "first"

    channel.reader.cancel()

    def write_on() -> None:
        for _ in range(10_000):
            channel.writer.write(b"x" * 1_000)
            time.sleep(0.001)

    with pytest.raises(EngineError, match="The reader of channel c0 has left") as raised:
        write_on()
    assert raised.value.code == "channel_closed"
    with pytest.raises(EngineError, match="was cancelled here"):
        channel.reader.receive()


def test_a_writer_that_is_lost_is_not_the_end_of_the_stream(
    channel: Channel, sockets: ChannelEngine
) -> None:
    channel.writer.write("part")
    assert channel.reader.receive() == "part"

    sockets.cut("c0", "write")

    for _ in range(2):
        with pytest.raises(EngineError, match="ended early: the writer was lost") as raised:
            channel.reader.receive()
        assert raised.value.code == "channel_closed"
        assert raised.value.details["close_code"] == 4001


def test_a_block_that_raises_aborts_with_its_error(channel: Channel) -> None:
    def write() -> None:
        with channel.writer as writer:
            writer.write("part")
            raise OSError("disk is full")

    with pytest.raises(OSError, match="disk is full"):
        write()

    assert channel.reader.receive() == "part"
    with pytest.raises(EngineError, match="ended early: OSError: disk is full"):
        channel.reader.receive()


def test_a_coroutine_that_raises_aborts(channel: Channel) -> None:
    async def run() -> None:
        async with channel.writer as writer:
            await writer.write_async("part")
            raise OSError("disk is full")

    with pytest.raises(OSError, match="disk is full"):
        asyncio.run(run())

    assert channel.reader.receive() == "part"
    with pytest.raises(EngineError, match="disk is full"):
        asyncio.run(channel.reader.receive_async())


def test_unknown_and_used_references(worker: Worker, channel: Channel) -> None:
    host = worker._thread.channels
    unknown = host.end(ref("read", key="wrong"))
    assert isinstance(unknown, ChannelReader)
    with pytest.raises(EngineError) as raised:
        unknown.receive()
    assert raised.value.code == "channel_not_found"

    channel.writer.write("x")
    assert channel.reader.receive() == "x"
    second = host.end(ref("read"))
    assert isinstance(second, ChannelReader)
    with pytest.raises(EngineError, match="in use already") as raised:
        second.receive()
    assert raised.value.code == "channel_not_found"


def test_an_engine_that_is_not_there(engine: FakeEngine) -> None:
    with Worker("ws://127.0.0.1:1", InitOptions(worker_name="tester"), engine.dial) as worker:
        worker.start()
        end = worker._thread.channels.end(ref("write"))
        assert isinstance(end, ChannelWriter)
        with pytest.raises(EngineError, match="Cannot connect to channel c0") as raised:
            end.write("x")
        assert raised.value.code == "engine_unreachable"


def test_a_writer_that_writes_nothing_ends_the_stream(channel: Channel) -> None:
    wait = in_thread(channel.writer.close)

    assert list(channel.reader) == []
    wait()
    channel.writer.close()
    with pytest.raises(EngineError, match="The writer is closed"):
        channel.writer.write("x")


@pytest.mark.parametrize("data", [None, 5, ["x"], {}])
def test_other_values_cannot_be_written(channel: Channel, data: Any) -> None:
    with pytest.raises(EngineError, match="A channel carries bytes and strings") as raised:
        channel.writer.write(data)
    assert raised.value.code == "INVALID_ARGUMENTS"


def test_the_blocking_forms_are_refused_on_the_workers_loop(worker: Worker) -> None:
    async def handler(payload: Any) -> Any:
        payload.write("x")

    worker.register_function("a::blocks", handler)

    with pytest.raises(EngineError, match="await the _async form"):
        worker.trigger({"function_id": "a::blocks", "payload": worker.create_channel().writer})


def test_shutdown_ends_the_ends(worker: Worker, channel: Channel) -> None:
    wait = in_thread(channel.reader.receive)
    channel.writer.write("x")
    wait()
    wait = in_thread(channel.reader.receive)
    time.sleep(0.05)

    worker.shutdown()

    with pytest.raises(EngineError) as raised:
        wait()
    assert raised.value.code == "SHUTDOWN"
    with pytest.raises(EngineError) as raised:
        channel.writer.write("y")
    assert raised.value.code == "SHUTDOWN"


def test_the_address_of_an_end_keeps_path_and_query(
    channel: Channel, sockets: ChannelEngine
) -> None:
    channel.writer.write("x")
    assert channel.reader.receive() == "x"

    assert sockets.claims == ["write /base/ws/channels/c0", "read /base/ws/channels/c0"]
    url = channel_url("ws://e:1/", "../a?b", "k&dir=write", "read")
    assert url == "ws://e:1/ws/channels/..%2Fa%3Fb?key=k%26dir%3Dwrite&dir=read"
    assert short_reason("é" * 100) == "é" * 61


def test_the_number_of_messages_that_wait_is_sent(worker: Worker, engine: FakeEngine) -> None:
    asyncio.run(worker.create_channel_async(7))

    assert engine.of_type("invokefunction")[-1]["data"] == {"buffer_size": 7}


def test_an_end_in_a_payload_is_its_reference(channel: Channel) -> None:
    from engine_sdk._codec import encode

    text = encode({"file": channel.reader, "t": ("é", channel.writer)}, "Payload")

    assert json.loads(text) == {"file": ref("read"), "t": ["é", ref("write")]}
