"""How a program with workers ends: real processes, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes import LIMIT_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

SOURCE = Path(__file__).parents[1] / "src"
TESTS = Path(__file__).parent
PREAMBLE = """
import asyncio, sys, threading, time
from engine_sdk import InitOptions, Logger, register_worker
worker = register_worker()
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program with a worker; it prints ``ready`` when the test may continue."""
    engine = subprocess.Popen(
        [sys.executable, str(TESTS / "real_engine.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert engine.stdout is not None
    environment = {
        **os.environ,
        "ENGINE_URL": f"ws://127.0.0.1:{engine.stdout.readline().strip()}",
        "PYTHONPATH": str(SOURCE),
    }
    programs = []

    def start(body: str, *arguments: str, preamble: str = PREAMBLE) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, *arguments, "-c", preamble + textwrap.dedent(body)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
            start_new_session=True,
        )
        programs.append(program)
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        return program

    yield start
    for program in programs:
        program.kill()
        program.communicate()
    engine.communicate()


def main_has_ended(program: subprocess.Popen[str]) -> None:
    """Wait until the main thread only waits for the others: it sleeps in the kernel."""
    stat = Path(f"/proc/{program.pid}/task/{program.pid}/stat")
    quiet = 0
    limit = time.monotonic() + LIMIT_S
    while quiet < 10 and time.monotonic() < limit:
        state = stat.read_text().rpartition(")")[2].split()[0] if stat.exists() else "S"
        quiet = quiet + 1 if state == "S" else 0
        time.sleep(0.01)


def ends(program: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the exit; returns its code and standard error."""
    _, errors = program.communicate(timeout=LIMIT_S)
    return program.returncode, errors


ENDED = """
worker.register_function("a::b", lambda payload: payload)
print("ready", flush=True)
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_script_whose_main_thread_has_ended_leaves_quietly(
    start: Start, signum: signal.Signals
) -> None:
    program = start(ENDED)
    main_has_ended(program)
    assert program.poll() is None

    program.send_signal(signum)

    assert ends(program) == (0, "")


def test_ctrl_c_reaches_a_main_thread_that_runs_and_prints_no_traceback(start: Start) -> None:
    program = start(
        """
        print("ready", flush=True)
        while True:
            time.sleep(0.05)
        """
    )

    program.send_signal(signal.SIGINT)

    # Python ends itself by the signal, which a shell shows as 130.
    assert ends(program) == (-signal.SIGINT, "")


def test_ctrl_c_reaches_the_loop_of_a_main_thread(start: Start) -> None:
    program = start(
        """
        async def main():
            try:
                print("ready", flush=True)
                await asyncio.sleep(60)
            finally:
                print("cleaned up", file=sys.stderr)
        asyncio.run(main())
        """
    )

    program.send_signal(signal.SIGINT)

    assert ends(program) == (-signal.SIGINT, "cleaned up\n")


def test_ctrl_c_may_be_caught(start: Start) -> None:
    program = start(
        """
        try:
            print("ready", flush=True)
            threading.Event().wait(60)
        except KeyboardInterrupt:
            worker.shutdown()
            sys.exit(7)
        """
    )

    program.send_signal(signal.SIGINT)

    assert ends(program) == (7, "")


def test_ctrl_c_ends_a_call_that_waits(start: Start) -> None:
    program = start(
        """
        try:
            print("ready", flush=True)
            worker.trigger({"function_id": "silent", "timeout_ms": 60000})
        except BaseException as error:
            print(type(error).__name__, file=sys.stderr)
            raise
        """
    )

    program.send_signal(signal.SIGINT)

    assert ends(program) == (-signal.SIGINT, "KeyboardInterrupt\n")


def test_sigterm_lets_a_main_thread_that_runs_clean_up(start: Start) -> None:
    program = start(
        """
        try:
            print("ready", flush=True)
            time.sleep(60)
        finally:
            print("cleaned up", file=sys.stderr)
        """
    )

    program.send_signal(signal.SIGTERM)

    assert ends(program) == (143, "cleaned up\n")


def test_a_handler_that_blocks_the_loop_cannot_keep_the_program(start: Start) -> None:
    program = start(
        """
        async def blocks():
            print("ready", flush=True)
            time.sleep(60)
        worker._thread.post(lambda: worker._thread._loop.create_task(blocks()))
        """
    )
    main_has_ended(program)

    before = time.monotonic()
    program.send_signal(signal.SIGTERM)

    assert ends(program)[0] == 143
    assert time.monotonic() - before < LIMIT_S / 2


def test_a_second_ctrl_c_ends_at_once_what_hangs(start: Start) -> None:
    program = start(
        """
        async def blocks():
            print("ready", flush=True)
            time.sleep(60)
        worker._thread.post(lambda: worker._thread._loop.create_task(blocks()))
        """,
        preamble=PREAMBLE + "import engine_sdk._process; engine_sdk._process.LEAVE_MS = 60_000\n",
    )
    main_has_ended(program)

    program.send_signal(signal.SIGINT)
    main_has_ended(program)
    program.send_signal(signal.SIGINT)

    assert ends(program)[0] == 130


def test_a_sync_handler_that_never_returns_cannot_keep_the_program(start: Start) -> None:
    program = start(
        """
        def blocks():
            print("ready", flush=True)
            time.sleep(60)
        worker._thread._pool.submit(blocks)
        """
    )
    main_has_ended(program)

    program.send_signal(signal.SIGINT)

    assert ends(program) == (0, "")


def test_a_script_that_fails_does_not_stay_alive(start: Start) -> None:
    program = start(
        """
        print("ready", flush=True)
        raise ValueError("no such shop")
        """
    )

    code, errors = ends(program)

    assert code == 1
    assert errors.endswith("ValueError: no such shop\n")


def test_signal_handlers_of_the_program_stay(start: Start) -> None:
    program = start(
        """
        print("ready", flush=True)
        """,
        preamble=f"""
import os, signal
def mine(*_):
    print("mine", file=__import__("sys").stderr, flush=True)
    os._exit(5)
signal.signal(signal.SIGINT, mine)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
{PREAMBLE}
assert signal.getsignal(signal.SIGINT) is mine
assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
""",
    )

    # A signal that arrives while the main thread begins to wait is seen by Python only later.
    main_has_ended(program)
    program.send_signal(signal.SIGTERM)
    program.send_signal(signal.SIGINT)

    assert ends(program) == (5, "mine\n")


def test_after_shutdown_a_program_ends_by_itself(start: Start) -> None:
    program = start(
        """
        print("ready", flush=True)
        Logger().info("last words")
        worker.shutdown()
        """
    )

    assert ends(program) == (0, "")


def test_everything_goes_on_after_the_main_thread_has_ended(start: Start) -> None:
    program = start(
        """
        import socket
        def blocking(payload):
            return payload + 1
        async def handler(payload):
            await asyncio.get_running_loop().getaddrinfo("localhost", 80)
            return await asyncio.to_thread(blocking, payload)
        worker.register_function("a::sync", blocking)
        worker.register_function("a::async", handler)
        print("ready", flush=True)
        def later():
            threading.main_thread().join()
            from engine_sdk._codec import read_invocation
            for id in ("a::sync", "a::async"):
                call = '{"type":"invokefunction","invocation_id":"1","function_id":"%s","data":1}'
                done = threading.Event()
                def finish(invocation, result, error):
                    print(invocation.function_id, result, error, file=sys.stderr)
                    done.set()
                worker._thread.session.finish = finish
                worker._thread.post(lambda: worker._thread.session.received(call % id))
                done.wait(10)
                worker._thread.session._running.clear()
            worker.shutdown()
        threading.Thread(target=later, daemon=True).start()
        """
    )

    assert ends(program) == (0, "a::sync 2 None\na::async 2 None\n")


def test_a_worker_may_be_registered_in_any_thread(start: Start) -> None:
    program = start(
        """
        def other():
            second = register_worker()
            print("ready", flush=True)
            second.shutdown()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        worker.shutdown()
        """
    )

    assert ends(program) == (0, "")
