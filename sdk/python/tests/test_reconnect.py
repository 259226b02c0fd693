"""When a worker dials again, without sockets and clocks."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import pytest

from engine_sdk import ReconnectOptions
from engine_sdk._reconnect import Reconnector, wait_before
from engine_sdk._transport import ENGINE_URL_DEFAULT, ConnectionLost, Transport
from fakes import LIMIT_S, Bench, FakeEngine, function, run_virtual


@pytest.mark.parametrize(
    ("attempt", "chance", "expected"),
    [
        (1, 0.0, 700),
        (1, 0.5, 1_000),
        (1, 1.0, 1_300),
        (2, 0.0, 969),
        (2, 1.0, 1_800),
        (5, 1.0, 1_800),
        (10_000, 0.5, 1_385),
    ],
)
def test_waits_double_up_to_a_bound_that_includes_chance(
    attempt: int, chance: float, expected: float
) -> None:
    assert wait_before(attempt, ReconnectOptions(), chance) == pytest.approx(expected, abs=1)


class Life:
    """A reconnector in virtual time."""

    def __init__(self, engine: FakeEngine, address: str = "ws://fake:1", **options: float) -> None:
        self.bench = Bench()
        self.states: list[str] = []
        self.engine = engine
        self.dialled: list[float] = []
        """Times of the dials, in seconds."""
        self.stop_at: float | None = None
        self.reconnector = Reconnector(
            self.bench.session,
            self.dial,
            address,
            ReconnectOptions(**options),  # type: ignore[arg-type]
            lambda state: self.changed(state),
            lambda: 0.5,
        )

    async def dial(self) -> Transport:
        self.dialled.append(round(asyncio.get_running_loop().time(), 2))
        return await self.answer()

    async def answer(self) -> Transport:
        return await self.engine.dial()

    def changed(self, state: str) -> None:
        self.states.append(state)

    def run(self) -> None:
        async def live() -> None:
            if self.stop_at is not None:
                asyncio.get_running_loop().call_later(self.stop_at, self.reconnector.stop)
            await self.reconnector.run()

        run_virtual(live())

    @property
    def pauses(self) -> list[float]:
        """Seconds between the dials."""
        return [round(b - a, 2) for a, b in zip(self.dialled, self.dialled[1:], strict=False)]


def test_delays_grow_to_less_than_two_seconds_and_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = FakeEngine()
    engine.refuse = "connection refused"
    life = Life(engine)
    life.stop_at = 6

    life.run()

    assert life.pauses == pytest.approx([1, 1.38, 1.38, 1.38], abs=0.02)
    assert life.states == ["connecting", "reconnecting", "disconnected"]
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    text = (
        "[engine] Cannot reach the engine at ws://fake:1 (connection refused); "
        "retrying in the background"
    )
    assert warnings == [text]


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        (ENGINE_URL_DEFAULT, "; start the engine, or set ENGINE_URL to its address"),
        ("ws://127.0.0.1:49135", ""),
    ],
)
def test_a_worker_without_an_address_says_what_to_do_when_nothing_listens_there(
    caplog: pytest.LogCaptureFixture, address: str, hint: str
) -> None:
    engine = FakeEngine()
    engine.refuse = "[Errno 111] Connect call failed ('127.0.0.1', 49134)"
    life = Life(engine, address)
    life.stop_at = 0.5

    life.run()

    [warning] = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warning.endswith(f"; retrying in the background{hint}")


def test_delays_double_up_to_the_longest() -> None:
    engine = FakeEngine()
    engine.refuse = "connection refused"
    life = Life(engine, first_ms=1_000, max_ms=6_500)
    life.stop_at = 23

    life.run()

    assert life.pauses == pytest.approx([1, 2, 4, 5, 5, 5], abs=0.02)


def test_the_count_of_attempts_restarts_after_a_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    engine = FakeEngine()
    engine.refuse = "later"
    life = Life(engine, max_ms=30_000)
    life.stop_at = 9.5

    async def answer() -> Transport:
        engine.refuse = None if len(life.dialled) == 3 else "gone again"
        return await engine.dial()

    def changed(state: str) -> None:
        life.states.append(state)
        if state == "connected":
            engine.drop()

    life.answer, life.changed = answer, changed  # type: ignore[method-assign]
    life.run()

    assert life.pauses == pytest.approx([1, 2, 1, 1, 2], abs=0.02)
    assert life.states[1:4] == ["reconnecting", "connected", "reconnecting"]
    assert "Reached the engine at ws://fake:1" in caplog.text
    assert "Lost the connection to ws://fake:1 (1001 going away); reconnecting" in caplog.text


def test_a_reconnector_gives_up_after_the_last_attempt() -> None:
    engine = FakeEngine()
    engine.refuse = "HTTP 401"
    life = Life(engine, max_attempts=2)

    life.run()

    assert (engine.dials, len(life.pauses), life.states[-1]) == (2, 1, "failed")
    assert life.reconnector.failure == "Gave up ws://fake:1 after 2 attempts: HTTP 401"


def test_refused_connections_are_tried_again_ever_later_until_one_is_let_in() -> None:
    engine = FakeEngine()
    engine.denies = True
    life = Life(engine)
    life.stop_at = 105

    async def answer() -> Transport:
        engine.denies = len(life.dialled) != 9
        return await engine.dial()

    def changed(state: str) -> None:
        life.states.append(state)
        if state == "connected" and not engine.denies:
            asyncio.get_running_loop().call_later(1, engine.drop)

    life.answer, life.changed = answer, changed  # type: ignore[method-assign]
    life.run()

    # At most 30 s with the longest variation; the ninth connection is let in and lives for 1 s.
    assert life.pauses == pytest.approx([1, 2, 4, 8, 16, 23.08, 23.08, 23.08, 2, 1], abs=0.02)


def test_refusals_are_forgotten_when_the_engine_is_gone() -> None:
    engine = FakeEngine()
    life = Life(engine)
    life.stop_at = 9.5

    async def answer() -> Transport:
        engine.denies = len(life.dialled) != 4
        engine.refuse = "gone" if len(life.dialled) == 4 else None
        return await engine.dial()

    life.answer = answer  # type: ignore[method-assign]
    life.run()

    assert life.pauses == pytest.approx([1, 2, 4, 1, 1], abs=0.02)


def test_refusals_count_as_attempts() -> None:
    engine = FakeEngine()
    engine.denies = True
    life = Life(engine, max_attempts=2)

    life.run()

    assert (engine.dials, life.states[-1]) == (2, "failed")
    text = "Gave up ws://fake:1 after 2 attempts: the engine refuses this worker"
    assert life.reconnector.failure == text


async def unanswered() -> Transport:
    """Dial into a network that drops every packet."""
    await asyncio.sleep(10)
    raise ConnectionLost("no answer in time")


def test_a_dial_without_an_answer_does_not_delay_the_next() -> None:
    life = Life(FakeEngine())
    life.stop_at = 62

    async def answer() -> Transport:
        return await (unanswered() if life.dialled[-1] < 60 else life.engine.dial())

    life.answer = answer  # type: ignore[method-assign]
    life.run()

    assert life.states == ["connecting", "reconnecting", "connected", "disconnected"]
    assert max(life.pauses) < 1.9
    assert 60 <= life.dialled[-1] < 62


def test_the_oldest_dial_has_its_whole_timeout_for_a_slow_network() -> None:
    life = Life(FakeEngine())
    life.stop_at = 12
    cancelled = 0

    async def answer() -> Transport:
        nonlocal cancelled
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            cancelled += 1
            raise
        return await life.engine.dial()

    life.answer = answer  # type: ignore[method-assign]
    life.run()

    assert life.states == ["connecting", "reconnecting", "connected", "disconnected"]
    assert life.engine.dials == 1
    assert cancelled == len(life.dialled) - 1


def test_dials_without_an_answer_count_as_attempts() -> None:
    life = Life(FakeEngine(), max_attempts=3)
    life.answer = unanswered  # type: ignore[method-assign]

    life.run()

    assert (len(life.dialled), life.states[-1]) == (3, "failed")


@pytest.mark.parametrize("answered", [True, False])
def test_1000_workers_return_within_two_seconds_not_at_the_same_moment(answered: bool) -> None:
    openings: list[float] = []
    chance = random.Random(13).random

    async def outage() -> None:
        now = asyncio.get_running_loop().time

        async def dial() -> Transport:
            if now() < 60:
                if not answered:
                    return await unanswered()
                raise ConnectionLost("connection refused")
            await asyncio.sleep(0.02)
            openings.append(now())
            return await FakeEngine().dial()

        workers = [
            Reconnector(Bench().session, dial, "", ReconnectOptions(), lambda _: None, chance)
            for _ in range(1_000)
        ]
        runs = [asyncio.ensure_future(worker.run()) for worker in workers]
        await asyncio.sleep(62)
        for worker in workers:
            worker.stop()
        await asyncio.wait(runs)

    run_virtual(outage())

    tenths = Counter(int((at - 60) * 10) for at in openings)
    assert (len(openings), max(tenths) < 20) == (1_000, True)
    assert max(tenths.values()) < 150


def test_stop_writes_what_is_queued() -> None:
    engine = FakeEngine()
    life = Life(engine)

    def changed(state: str) -> None:
        if state == "connected":
            life.bench.session.add_function(function("a::b"))
            life.reconnector.stop()

    life.changed = changed  # type: ignore[method-assign]
    life.run()

    assert [frame["type"] for frame in engine.frames] == ["invokefunction", "registerfunction"]


def test_stop_before_the_start_ends_dialling() -> None:
    life = Life(FakeEngine())
    life.answer = unanswered  # type: ignore[method-assign]
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

        async def answer() -> NarrowTransport:
            return transport

        life.answer = answer  # type: ignore[method-assign]
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
