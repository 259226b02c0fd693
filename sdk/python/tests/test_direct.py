"""Sync calls whose thread does their I/O: at each instruction it may fail, stop or be entered."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from websockets.protocol import State
from websockets.sync.server import ServerConnection

from conftest import QUICK
from direct_engine import (
    CALLER,
    MIXTURES,
    Interrupted,
    Message,
    SocketEngine,
    direct_of,
    each_instruction,
    echo,
    framed,
    interrupt,
    invocation,
    lent,
    result_of,
    stress,
    wait_until,
)
from engine_sdk import InitOptions, InvocationError, Worker, _direct, _transport, register_worker
from engine_sdk._calls import Call
from engine_sdk._lease import Lease, load_system
from engine_sdk._transport import WebSocketTransport
from fakes import LIMIT_S


@pytest.fixture(autouse=True)
def plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_SDK_FAST", "0")
    monkeypatch.setenv("OTEL_ENABLED", "false")
    if load_system() is None:
        pytest.skip("this Python or system has no direct calls")


@pytest.fixture
def engine() -> Iterator[SocketEngine]:
    engine = SocketEngine()
    yield engine
    engine.server.shutdown()


@pytest.fixture
def worker(engine: SocketEngine) -> Iterator[Worker]:
    with register_worker(engine.url, InitOptions(reconnect=QUICK)) as worker:
        yield worker


def test_the_loop_sleeps_while_a_thread_calls(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start, session = worker._thread.start_call, worker._thread.session

    def count(call: Call) -> None:
        started.append(call.function_id)
        start(call)

    def note(call: Call) -> None:
        adopted.append(call.done)
        adopt(call)

    adopt, adopted = session.adopt_call, list[bool]()
    monkeypatch.setattr(session, "adopt_call", note)
    monkeypatch.setattr(worker._thread, "start_call", count)

    def in_a_row() -> bool:
        before = len(started)
        assert [echo(worker, n) for n in range(50)] == list(range(50))
        return len(started) == before

    wait_until(in_a_row)
    wait_until(lambda: not direct_of(worker)._offers)
    assert session.is_quiet
    assert True not in adopted, "the loop takes over calls that have ended"


def test_an_exception_at_any_instruction_loses_nothing(
    worker: Worker, engine: SocketEngine
) -> None:
    count = 0
    for at in each_instruction(worker, interrupt):
        with at, contextlib.suppress(Interrupted):
            assert echo(worker, {"n": count}) == {"n": count}
            assert not at.has_run, "the exception was swallowed"
        count += at.has_run
        assert [echo(worker, n) for n in range(2)] == [0, 1]

    assert count > 200
    assert engine.connections == 1
    wait_until(lambda: worker._thread.session.is_quiet)


def test_a_call_within_a_call_works_at_any_instruction(
    worker: Worker, engine: SocketEngine
) -> None:
    inner: list[Any] = []
    count = 0
    for at in each_instruction(worker, lambda: inner.append(echo(worker, "inner"))):
        with at:
            assert echo(worker, {"n": count}) == {"n": count}
        count += at.has_run

    assert inner == ["inner"] * count
    assert count > 200
    assert engine.connections == 1


def test_a_thread_that_stops_at_any_instruction_holds_nothing_back(
    worker: Worker, engine: SocketEngine
) -> None:
    def other() -> None:
        thread = threading.Thread(target=lambda: results.append(echo(worker, "other")), daemon=True)
        thread.start()
        thread.join(LIMIT_S)
        assert not thread.is_alive(), "the other thread waits for this one"

    results: list[Any] = []
    count = 0
    for at in each_instruction(worker, other):
        with at:
            assert echo(worker, {"n": count}) == {"n": count}
        count += at.has_run

    assert results == ["other"] * count
    assert count > 200
    assert engine.connections == 1


def test_an_interrupted_call_is_cancelled(
    worker: Worker, engine: SocketEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = threading.Event()
    engine.answers["slow"] = lambda *_: os.kill(os.getpid(), signal.SIGALRM)
    cancel = worker._thread.session.cancel_call

    def note(call: Call) -> None:
        cancel(call)
        cancelled.set()

    monkeypatch.setattr(worker._thread.session, "cancel_call", note)

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        lent(worker)
        with pytest.raises(Interrupted):
            worker.trigger({"function_id": "slow"})
    finally:
        signal.signal(signal.SIGALRM, previous)

    assert cancelled.wait(LIMIT_S)
    assert echo(worker, 1) == 1


@pytest.mark.parametrize("answer", MIXTURES)
def test_what_belongs_to_others_arrives_in_order(
    worker: Worker, engine: SocketEngine, answer: Callable[..., None]
) -> None:
    engine.answers["mixed"] = answer
    seen: list[int] = []

    async def here(payload: int) -> int:
        seen.append(payload)
        return payload

    worker.register_function("here", here)
    for n in range(20):
        lent(worker)
        assert worker.trigger({"function_id": "mixed", "payload": n}) == n
        wait_until(lambda: len(engine.results) >= 3)
        assert seen == [result["result"] for result in engine.results] == [0, 1, 2]
        seen.clear()
        engine.results.clear()
    assert engine.connections == 1


def test_a_handler_runs_while_the_call_that_it_ends_waits(
    worker: Worker, engine: SocketEngine
) -> None:
    waiting: list[tuple[ServerConnection, Message]] = []

    def ask_first(connection: ServerConnection, message: Message) -> None:
        waiting.append((connection, message))
        connection.send(invocation(7))

    async def here(_: int) -> None:
        connection, message = waiting.pop()
        connection.send(result_of(message, result="ended"))

    engine.answers["ask"] = ask_first
    worker.register_function("here", here)
    for _ in range(20):
        lent(worker)
        assert worker.trigger({"function_id": "ask"}) == "ended"


def test_the_loop_wakes_the_thread_whose_call_it_takes_over(
    worker: Worker, engine: SocketEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_the_lease(connection: ServerConnection, message: Message) -> None:
        worker._thread.post(lambda: None)
        connection.send(result_of(message, result=woken.wait(LIMIT_S / 4)))

    def note(lease: Lease, wait_ms: int) -> None:
        wait(lease, wait_ms)
        woken.set()

    woken, wait = threading.Event(), Lease.wait
    engine.answers["late"] = after_the_lease
    monkeypatch.setattr(_direct, "LEASE_MS", LIMIT_S * 500)
    monkeypatch.setattr(Lease, "wait", note)
    for _ in range(4):
        lease = lent(worker)
        assert lease._poll.poll(0) == [], "what woke another thread wakes this one"
        woken.clear()
        assert worker.trigger({"function_id": "late"}) is True


def test_the_loop_writes_what_the_system_did_not_take(
    worker: Worker, engine: SocketEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = load_system()
    assert system is not None
    send, five = system.send, system.size(5)
    monkeypatch.setattr(_direct, "LEASE_MS", LIMIT_S * 500)
    before = time.monotonic()
    lease = lent(worker)
    lease._system = system._replace(send=lambda fd, frame, _, flags: send(fd, frame, five, flags))
    assert echo(worker, "x" * 100) == "x" * 100
    assert lease.exchange is not None
    assert lease.exchange.sent == [5]
    assert time.monotonic() - before < LIMIT_S / 4, "the thread waited for a call that is not sent"


def test_pings_are_answered(worker: Worker, engine: SocketEngine) -> None:
    ponged: list[threading.Event] = []

    def ping(connection: ServerConnection, message: Message) -> None:
        ponged.append(connection.ping())
        connection.send(result_of(message))

    engine.answers["ping"] = ping
    lent(worker)
    worker.trigger({"function_id": "ping"})
    assert ponged[0].wait(LIMIT_S)


@pytest.mark.parametrize("payload", ["x" * 200, "é" * 5_000, "x" * 20_000, "x" * 5_000_000, None])
def test_payloads_of_any_size_come_back(worker: Worker, payload: Any) -> None:
    for _ in range(3):
        lent(worker)
        assert echo(worker, payload) == payload


def test_a_call_that_fails_raises_its_error(worker: Worker, engine: SocketEngine) -> None:
    error = {"code": "sold_out", "message": "none left", "details": {"left": 0}}
    engine.answers["fails"] = lambda connection, call: connection.send(result_of(call, error=error))

    lent(worker)
    with pytest.raises(InvocationError, match="none left") as caught:
        worker.trigger({"function_id": "fails"})
    assert caught.value.code == "sold_out"
    assert caught.value.details == {"left": 0}


def test_progress_reaches_the_caller(worker: Worker, engine: SocketEngine) -> None:
    def answer(connection: ServerConnection, message: Message) -> None:
        id_ = message["invocation_id"]
        connection.send(json.dumps({"type": "invocationprogress", "invocation_id": id_, "data": 1}))
        connection.send(result_of(message))

    engine.answers["steps"] = answer
    steps: list[Any] = []
    lent(worker)
    worker.trigger({"function_id": "steps", "on_progress": steps.append})
    assert steps == [1]


@pytest.mark.parametrize("timeout_ms", [20, 150])
def test_a_timeout_holds(worker: Worker, engine: SocketEngine, timeout_ms: int) -> None:
    engine.answers["silent"] = lambda *_: None
    worker._thread.session._capabilities = frozenset({"cancel"})
    lent(worker)
    before = time.monotonic()
    with pytest.raises(InvocationError, match="timed out"):
        worker.trigger({"function_id": "silent", "timeout_ms": timeout_ms})
    assert time.monotonic() - before < LIMIT_S / 5
    assert echo(worker, 1) == 1


def test_a_lost_connection_ends_the_call_and_comes_back(
    worker: Worker, engine: SocketEngine
) -> None:
    engine.answers["drop"] = lambda connection, _: connection.socket.shutdown(socket.SHUT_RDWR)
    for _ in range(5):
        lent(worker)
        with pytest.raises(InvocationError) as caught:
            worker.trigger({"function_id": "drop"})
        assert caught.value.code == "invocation_stopped"
        assert echo(worker, 1) == 1
    assert engine.connections == 6


def test_shutdown_ends_a_call(worker: Worker, engine: SocketEngine) -> None:
    engine.answers["last"] = lambda *_: worker.leave()
    lent(worker)
    with pytest.raises(InvocationError) as caught:
        worker.trigger({"function_id": "last"})
    assert caught.value.code == "SHUTDOWN"


def test_what_the_thread_asked_the_loop_for_before_is_sent_before(
    worker: Worker, engine: SocketEngine
) -> None:
    engine.answers["void"] = lambda *_: None
    for _ in range(300):
        worker.trigger({"function_id": "void", "action": {"type": "void"}})
        echo(worker)
    assert engine.calls == ["void", "echo"] * 300


def test_a_step_that_a_finalizer_tore_costs_the_connection(
    engine: SocketEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = load_system()
    assert system is not None
    monkeypatch.setattr(_transport, "CLOSE_TIMEOUT_MS", 50)  # Muted, it misses the close frame.
    monkeypatch.setattr(_direct, "LEASE_MS", 1_000)

    def after_the_end(step: Callable[..., int]) -> Callable[..., int]:
        def torn(*given: Any) -> int:
            if threading.current_thread() is worker._thread:
                return step(*given)
            lease.fds.clear()  # As if the loop took the connection back meanwhile.
            done = threading.Event()
            worker._thread.post(partial(done.wait, LIMIT_S))
            wait_until(lambda: direct_of(worker)._lease is not lease)
            try:
                return step(*given)
            finally:
                done.set()

        return torn

    def reconnected(before: int) -> bool:
        with contextlib.suppress(InvocationError):
            echo(worker)
        return engine.connections > before

    with register_worker(engine.url, InitOptions(reconnect=QUICK)) as worker:
        for connections, name in enumerate(("epoll_ctl", "send", "recv"), 1):
            lease = lent(worker)
            lease._system = system._replace(**{name: after_the_end(getattr(system, name))})
            try:
                assert echo(worker, name) == name
            except InvocationError as error:
                assert error.code == "invocation_stopped"  # noqa: PT017 - it may also succeed
            wait_until(partial(reconnected, connections))


def test_the_collector_does_not_run_within_a_step(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_direct, "LEASE_MS", 1_000)
    lease = lent(worker)
    steps, collections, inside = 0, 0, False

    class Watched(list[int]):
        def __iter__(self) -> Iterator[int]:
            nonlocal inside, steps
            for fd in super().__iter__():
                # `mute` does not ask for a second one, so its end is not seen.
                inside = sys._getframe(1).f_code.co_name in ("send", "receive")
                steps += inside
                yield fd
                inside = False

    def note(*_: object) -> None:
        nonlocal collections
        collections += inside

    lease.fds = Watched(lease.fds)
    thresholds = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1, 1_000_000, 1_000_000)  # A full collection frees the spare tuples.
    try:
        assert [echo(worker, n) for n in range(20)] == list(range(20))
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(note)

    assert steps > 2
    assert collections == 0


def test_a_process_without_descriptors_keeps_its_worker(
    worker: Worker, engine: SocketEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        refused.append(True)
        raise OSError(errno.EMFILE, "Too many open files")

    refused: list[bool] = []
    monkeypatch.setattr(os, "eventfd", fail)
    wait_until(lambda: bool(refused), lambda: echo(worker))
    assert [echo(worker, n) for n in range(3)] == [0, 1, 2]
    assert engine.connections == 1
    monkeypatch.undo()


@pytest.mark.parametrize(
    "fields",
    [{"done": True}, {"timeout_ms": 19_999}, {"progress": print}, {"payload": "x" * 64 * 1024}],
)
def test_the_loop_makes_some_calls(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    monkeypatch.setattr(_direct, "LEASE_MS", 10_000)
    direct, lease = direct_of(worker), lent(worker)
    call = Call("echo", 20_000, time.monotonic() * 1000 + 20_000, "c")
    assert not direct.exchange(replace(call, **fields))
    assert direct._offers == [lease]
    assert direct.exchange(call)


@pytest.mark.parametrize("head", [b"\x81\x7f", b"\x81\x90", b"\x89\x10", b"\x01\x10"])
def test_other_frames_than_a_whole_text_are_left_to_the_loop(head: bytes) -> None:
    message = {"type": "invocationresult", "invocation_id": "c", "pad": ""}
    pad = (head[1] & 0x7F if head[1] == 0x7F else head[1]) - len(json.dumps(message))
    text = json.dumps({**message, "pad": "x" * max(0, pad)})
    call = Call("echo", 1_000, 0, "c")
    assert _direct._read_result(framed(text), call)["invocation_id"] == "c"
    with pytest.raises(ValueError, match="not one whole text frame"):
        _direct._read_result(head + text.encode(), call)


def test_results_with_channels_are_left_to_the_loop() -> None:
    ids = {"type": "invocationresult", "invocation_id": "c"}
    data = framed(json.dumps({**ids, "result": {"access_key": "k"}}))
    with pytest.raises(ValueError, match="the loop opens channels"):
        _direct._read_result(data, Call("echo", 1_000, 0, "c"))


def test_a_direct_call_counts_as_input_and_lets_more_input_wake_the_loop(worker: Worker) -> None:
    transport, system = worker._thread._reconnector.transport, load_system()
    assert isinstance(transport, WebSocketTransport)
    assert system is not None
    connection, masks, leases = transport._connection, list[bytes](), list[Lease]()

    def change(*given: Any) -> int:
        if threading.current_thread() is not worker._thread:
            masks.append(given[3])
        return system.epoll_ctl(*given)

    def is_direct() -> bool:
        leases.append(lent(worker))
        leases[-1]._system = system._replace(epoll_ctl=change)
        masks.clear()
        connection.heard = 0.0
        echo(worker)
        return len(leases[-1].exchange.got if leases[-1].exchange else ()) == 1 and len(masks) != 1

    wait_until(is_direct)
    assert masks == [leases[-1]._events[mask][0] for mask in (0, select.EPOLLIN)]
    wait_until(lambda: connection.heard > 0)


def test_nothing_is_lent_when_that_is_not_safe(worker: Worker, engine: SocketEngine) -> None:
    direct, transport = direct_of(worker), worker._thread._reconnector.transport
    assert isinstance(transport, WebSocketTransport)
    connection, loop = transport._connection, worker._thread._loop
    tries: list[Any] = []

    def try_all() -> None:
        """In the loop."""
        unsafe: list[tuple[Any, str, Any]] = [
            (loop, "get_debug", lambda: True),
            (transport, "_fd", None),  # As with TLS.
            (connection, "unparsed", 1),
            (connection, "_parts", [b"x"]),
            (connection.protocol, "state", State.CLOSING),
            (connection.transport, "get_write_buffer_size", lambda: 1),
            (connection.transport, "is_reading", lambda: False),
            (connection.transport, "is_closing", lambda: True),
            (worker._thread.session, "_open", False),
            (worker._thread.session, "_outbox", ["frame"]),
            (worker._thread.session, "_pending", ["call"]),
            (direct, "_is_wanted", False),
        ]
        for target, name, value in [(direct, "_is_wanted", True), *unsafe]:
            direct._is_wanted = True
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(target, name, value)
                tries.append(direct.lend(None))
            if tries[-1] is not None:
                direct.take_back()

    worker._thread.post(try_all)
    wait_until(lambda: len(tries) == 13)
    assert tries[0] is not None
    assert tries[1:] == [None] * 12


def test_the_loop_sleeps_undisturbed_between_calls(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = direct_of(worker)
    lent(worker)
    wait_until(lambda: not direct._offers and not direct._is_wanted)
    lends, lend = [], direct.lend

    def count(timeout: float | None) -> Lease | None:
        lends.append(timeout)
        return lend(timeout)

    monkeypatch.setattr(direct, "lend", count)
    time.sleep(4 * _direct.LEASE_MS / 1000)
    assert len(lends) <= 1


def test_uvloop_keeps_the_ordinary_way(
    engine: SocketEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("uvloop")
    monkeypatch.setenv("ENGINE_SDK_FAST", "1")
    with register_worker(engine.url) as worker:
        assert worker._thread.direct is None
        assert echo(worker, 1) == 1


def test_a_forked_child_leaves_the_connection_alone(worker: Worker, engine: SocketEngine) -> None:
    lent(worker)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Other threads run.
        child = os.fork()
    if child == 0:
        call = Call("echo", 1_000, time.monotonic() * 1000 + 1_000, "child")
        os._exit(direct_of(worker).exchange(call))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [echo(worker, n) for n in range(50)] == list(range(50))
    assert engine.connections == 1


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("call()", -signal.SIGINT),
        ("threading.Thread(target=call, daemon=True).start(); worker.shutdown()", 0),
        ("threading.Thread(target=call, daemon=True).start(); raise KeyError", 1),
    ],
)
def test_a_program_ends_while_it_calls(engine: SocketEngine, ending: str, code: int) -> None:
    """By Ctrl-C, by shutdown, and by a failure of the main thread."""
    process = subprocess.Popen(
        [sys.executable, "-c", CALLER + ending, engine.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    process.stdout.readline()
    if code < 0:
        process.send_signal(signal.SIGINT)
    try:
        assert process.wait(LIMIT_S) == code
    finally:
        process.kill()
        process.communicate()


def test_threads_get_their_own_results_while_signals_raise(
    engine: SocketEngine, worker: Worker
) -> None:
    """``STRESS_S`` in the environment sets how long."""
    stress(worker, float(os.environ.get("STRESS_S", "1.5")))
    assert engine.connections == 1
