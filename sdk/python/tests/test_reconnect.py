"""When a worker dials again, without sockets and clocks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence

import pytest

from engine_sdk import ReconnectOptions
from engine_sdk._reconnect import Reconnector, wait_before
from fakes import LIMIT_S, Bench, FakeEngine, function


@pytest.mark.parametrize(
    ("attempt", "chance", "expected"),
    [
        (1, 0.5, 1_000),
        (2, 0.5, 2_000),
        (5, 0.5, 16_000),
        (6, 0.5, 30_000),
        (10_000, 0.5, 30_000),
        (1, 0.0, 700),
        (1, 1.0, 1_300),
        (99, 1.0, 39_000),
    ],
)
def test_waits_double_up_to_a_bound_give_or_take_chance(
    attempt: int, chance: float, expected: float
) -> None:
    assert wait_before(attempt, ReconnectOptions(), chance) == pytest.approx(expected)


class Life:
    """A reconnector whose pauses a test counts and ends."""

    def __init__(self, engine: FakeEngine, **options: int) -> None:
        self.bench = Bench()
        self.states: list[str] = []
        self.pauses: list[float] = []
        self.engine = engine
        self.stop_after = 10
        self.reconnector = Reconnector(
            self.bench.session,
            engine.dial,
            "ws://fake:1",
            ReconnectOptions(**options),
            self.states.append,
            self.pause,
            lambda: 0.5,
        )

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if len(self.pauses) >= self.stop_after:
            self.reconnector.stop()

    def run(self) -> None:
        asyncio.run(asyncio.wait_for(self.reconnector.run(), LIMIT_S))


def test_delays_grow_with_each_attempt_and_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = FakeEngine()
    engine.refuse = "connection refused"
    life = Life(engine)
    life.stop_after = 7

    life.run()

    assert life.pauses == [1, 2, 4, 8, 16, 30, 30]
    assert life.states == ["connecting", "reconnecting", "disconnected"]
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    text = "[engine] Cannot reach the engine at ws://fake:1 (connection refused); trying again"
    assert warnings == [text]


def test_the_count_of_attempts_restarts_after_a_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    engine = FakeEngine()
    engine.refuse = "later"
    life = Life(engine)

    async def pause(seconds: float) -> None:
        life.pauses.append(seconds)
        if len(life.pauses) == 3:
            engine.refuse = None
        if len(life.pauses) == 5:
            life.reconnector.stop()

    original = life.states.append

    def heard(state: str) -> None:
        original(state)
        if state == "connected":
            engine.refuse = "gone again"
            engine.drop()

    life.reconnector._pause = pause
    life.reconnector._state_changed = heard
    life.run()

    assert life.pauses == [1, 2, 4, 1, 1]
    assert life.states[1:4] == ["reconnecting", "connected", "reconnecting"]
    assert "Reached the engine at ws://fake:1" in caplog.text
    assert "Lost the connection to ws://fake:1 (1001 going away); trying again" in caplog.text


def test_a_reconnector_gives_up_after_the_last_attempt() -> None:
    engine = FakeEngine()
    engine.refuse = "HTTP 401"
    life = Life(engine, max_attempts=2)

    life.run()

    assert (engine.dials, len(life.pauses), life.states[-1]) == (2, 1, "failed")
    assert life.reconnector.failure == "Gave up ws://fake:1 after 2 attempts: HTTP 401"


def test_stop_writes_what_is_queued() -> None:
    engine = FakeEngine()
    life = Life(engine)

    def heard(state: str) -> None:
        if state == "connected":
            life.bench.session.add_function(function("a::b"))
            life.reconnector.stop()

    life.reconnector._state_changed = heard
    life.run()

    assert [frame["type"] for frame in engine.frames] == ["invokefunction", "registerfunction"]


def test_stop_before_the_start_ends_dialling() -> None:
    engine = FakeEngine()

    async def never() -> None:
        await asyncio.Event().wait()

    life = Life(engine)
    life.reconnector._dial = never  # type: ignore[assignment]
    life.reconnector.stop()

    life.run()

    assert life.states == ["connecting", "disconnected"]


class NarrowTransport:
    """A transport that is full after each write, until a test empties it."""

    def __init__(self, batch: bool) -> None:
        self.batch = batch
        self.is_full = False
        self.writes: list[list[str | bytes]] = []
        self.greeted = asyncio.Event()

    def listen(self, received: Callable[[list[str]], None], writable: Callable[[], None]) -> None:
        self.received, self.writable = received, writable

    def write(self, frames: Sequence[str | bytes]) -> None:
        self.writes.append(list(frames))
        self.is_full = True
        self.greeted.set()

    async def empty(self) -> None:
        self.is_full = False
        self.writable()
        await asyncio.sleep(0)

    async def drain(self) -> None:
        self.is_full = False

    async def ended(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def close(self) -> None:
        return


def on_a_narrow_transport(
    batch: bool, test: Callable[[Life, NarrowTransport], Awaitable[None]]
) -> list[list[str | bytes]]:
    async def run() -> NarrowTransport:
        life, transport = Life(FakeEngine()), NarrowTransport(batch)

        async def dial() -> NarrowTransport:
            return transport

        life.reconnector._dial = dial
        running = asyncio.ensure_future(life.reconnector.run())
        await asyncio.wait_for(transport.greeted.wait(), LIMIT_S)
        transport.writes.clear()
        await transport.empty()
        await test(life, transport)
        life.reconnector.stop()
        await asyncio.wait_for(running, LIMIT_S)
        return transport

    return asyncio.run(run()).writes


@pytest.mark.parametrize("batch", [True, False])
def test_messages_of_one_loop_iteration_are_one_write(batch: bool) -> None:
    async def test(life: Life, transport: NarrowTransport) -> None:
        for _ in range(3):
            life.reconnector.output_ready()
            life.bench.session.add_function(function("a::b"))
        await asyncio.sleep(0)

    writes = on_a_narrow_transport(batch, test)

    frames = [str(frame) for frame in writes[0]]
    assert len(frames) == (1 if batch else 3)
    messages = "\n".join(frames).split("\n")
    assert [json.loads(m)["type"] for m in messages] == ["registerfunction"] * 3


def test_a_full_transport_is_not_written_to_until_it_has_room() -> None:
    async def test(life: Life, transport: NarrowTransport) -> None:
        for name in ("a::a", "a::b", "a::c"):
            life.reconnector.output_ready()
            life.bench.session.add_function(function(name))
            await asyncio.sleep(0)
        assert len(transport.writes) == 1
        await transport.empty()
        assert len(transport.writes) == 2

    writes = on_a_narrow_transport(True, test)

    assert [str(frame).count("registerfunction") for [frame] in writes[:2]] == [1, 2]


def test_a_batch_stays_below_a_mebibyte_and_a_large_message_travels_alone() -> None:
    async def test(life: Life, transport: NarrowTransport) -> None:
        life.reconnector.output_ready()
        for size in (100, 200_000, 3_000_000, 100, *[1_000] * 1_000):
            life.bench.call(payload=f'"{"🚀" * size}"', invocation_id=None)
        await asyncio.sleep(0)
        while transport.is_full:
            await transport.empty()

    writes = on_a_narrow_transport(True, test)

    frames = [str(frame) for write in writes for frame in write]
    sizes = [len(frame.encode()) for frame in frames]
    assert sum(frame.count("invokefunction") for frame in frames) == 1_004
    assert [size for size in sizes if size > 1024 * 1024] == [sizes[1]]
    assert frames[0].count("\n") == 1
    assert "\n" not in frames[1]
    assert len(frames) < 12
