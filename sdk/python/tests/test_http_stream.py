"""Handlers that return streams, over real sockets; which values are streams; events."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from channel_engine import ChannelEngine
from engine_sdk import CallContext, ChannelReader, EngineError, InitOptions, Worker
from engine_sdk._http_stream import encode_item, event_of, streamed_response
from fakes import LIMIT_S, FakeEngine
from test_channels import in_thread, ref


@pytest.fixture
def sockets() -> Iterator[ChannelEngine]:
    server = ChannelEngine()
    yield server
    server.close()


@pytest.fixture
def worker(engine: FakeEngine, sockets: ChannelEngine) -> Iterator[Worker]:
    with Worker(sockets.url, InitOptions(worker_name="tester"), engine.dial) as worker:
        worker.start()
        yield worker


def ask(worker: Worker, handler: Any) -> ChannelReader:
    """Call a handler as a request does; what the client reads of its response."""
    worker.register_function("a::stream", handler)
    payload = {"path": "/a", "response": ref("write")}
    assert worker.trigger({"function_id": "a::stream", "payload": payload}) is None
    end = worker._thread.channels.end(ref("read"))
    assert isinstance(end, ChannelReader)
    return end


TEXT_HEAD = '{"type":"set_headers","headers":{"content-type":"text/plain; charset=utf-8"}}'


def texts(_: Any) -> Iterator[str | bytes]:
    yield "one"
    yield b"two"


async def async_texts(_: Any) -> AsyncIterator[str | bytes]:
    yield "one"
    await asyncio.sleep(0)
    yield b"two"


async def returns_texts(payload: Any) -> Any:
    return async_texts(payload)


@pytest.mark.parametrize("handler", [texts, async_texts, returns_texts])
def test_generators_of_every_kind_are_responses(worker: Worker, handler: Any) -> None:
    assert list(ask(worker, handler)) == [TEXT_HEAD, b"one", b"two"]


def test_a_body_has_status_and_headers_beside_it(worker: Worker) -> None:
    def events() -> Iterator[Any]:
        yield {"n": 1}
        yield {"event": "end", "data": "a\nb"}

    headers = {"Content-Type": "text/event-stream"}
    answer = {"status_code": 202, "headers": headers, "body": events()}

    assert list(ask(worker, lambda _: answer)) == [
        '{"type":"set_status","status_code":202}',
        '{"type":"set_headers","headers":{"Content-Type":"text/event-stream"}}',
        b'data: {"n":1}\n\n',
        b"event: end\ndata: a\ndata: b\n\n",
    ]


def test_a_stream_without_items_has_its_head(worker: Worker) -> None:
    answer = {"status_code": 204, "body": iter([])}

    assert list(ask(worker, lambda _: answer)) == ['{"type":"set_status","status_code":204}']


@pytest.mark.parametrize("is_async", [False, True])
def test_a_generator_that_raises_cuts_the_response(worker: Worker, is_async: bool) -> None:
    def fails(_: Any) -> Iterator[Any]:
        yield b"part"
        raise OSError("the disk is gone")

    async def fails_async(_: Any) -> AsyncIterator[Any]:
        yield b"part"
        raise OSError("the disk is gone")

    reader = ask(worker, fails_async if is_async else fails)

    assert reader.receive() == b"part"
    with pytest.raises(EngineError, match="OSError: the disk is gone"):
        reader.receive()


def test_an_async_generator_is_cancelled_when_the_client_leaves(worker: Worker) -> None:
    ended = threading.Event()
    contexts: list[CallContext] = []

    async def ticks() -> AsyncIterator[str]:
        try:
            yield "tick"
            await asyncio.sleep(3_600)
        finally:
            ended.set()

    def handler(_: Any, __: Any, context: CallContext) -> Any:
        contexts.append(context)
        return ticks()

    reader = ask(worker, handler)
    assert [reader.receive(), reader.receive()] == [TEXT_HEAD, b"tick"]

    reader.cancel()

    assert ended.wait(LIMIT_S)
    assert contexts[0].cancelled
    assert contexts[0].cancel_reason == "the client has left"


def test_a_generator_in_a_thread_ends_at_its_next_item(worker: Worker) -> None:
    ended = threading.Event()

    def ticks(_: Any) -> Iterator[str]:
        try:
            while True:
                yield "tick"
                time.sleep(0.001)
        finally:
            ended.set()

    reader = ask(worker, ticks)
    assert reader.receive() == TEXT_HEAD

    in_thread(reader.cancel)()

    assert ended.wait(LIMIT_S)


@pytest.mark.parametrize("value", [None, "text", [1], {"body": "x"}, {"body": [1]}, b"x", 5])
def test_other_values_are_no_streams(worker: Worker, value: Any) -> None:
    payload = {"response": worker._thread.channels.end(ref("write"))}

    assert streamed_response(payload, value) is None


def test_a_generator_without_a_response_is_no_stream() -> None:
    assert streamed_response({"a": 1}, iter([])) is None
    assert streamed_response(None, iter([])) is None


def test_objects_need_a_content_type_and_events_cannot_break_out() -> None:
    with pytest.raises(EngineError, match="carries str and bytes"):
        encode_item({"a": 1}, "text/plain")
    assert event_of({"event": "a\nb", "data": "x\r\ny"}) == "event: a b\ndata: x\ndata: y\n\n"
    assert event_of([1]) == "data: [1]\n\n"
