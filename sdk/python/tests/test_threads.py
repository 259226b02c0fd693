"""The threads of sync handlers, and work from other threads for a loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from engine_sdk import _threads
from engine_sdk._threads import Mailbox, ThreadPool, running_loop_mailbox
from fakes import LIMIT_S


def test_a_pool_runs_no_more_jobs_at_once_than_it_may() -> None:
    pool = ThreadPool(2)
    started, release = threading.Semaphore(0), threading.Event()
    names: list[str] = []

    def job() -> None:
        names.append(threading.current_thread().name)
        started.release()
        release.wait(LIMIT_S)

    for _ in range(5):
        pool.submit(job)
    assert started.acquire(timeout=LIMIT_S)
    assert started.acquire(timeout=LIMIT_S)
    assert not started.acquire(timeout=0.05)
    release.set()
    for _ in range(3):
        assert started.acquire(timeout=LIMIT_S)

    assert len(names) == 5
    assert set(names) == {"engine-sdk-handler"}
    pool.close()


def test_a_job_that_waits_lets_another_one_run() -> None:
    pool = ThreadPool(1)
    inner, outer = threading.Event(), threading.Event()

    def waits() -> None:
        with pool.waiting():
            inner.wait(LIMIT_S)
        outer.set()

    pool.submit(waits)
    pool.submit(inner.set)

    assert outer.wait(LIMIT_S)
    pool.close()


@pytest.mark.skipif(_threads._STARTS_EARLY, reason="this Python starts all threads at once")
def test_one_thread_at_a_time_is_called_and_sees_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[threading.Thread] = []
    monkeypatch.setattr(_threads.PoolThread, "start", lambda thread: started.append(thread))
    pool = ThreadPool(32)
    done: list[int] = []

    for number in range(5):
        pool.submit(lambda number=number: done.append(number))  # type: ignore[misc]
    assert len(started) == 1

    monkeypatch.setattr(_threads, "THREAD_IDLE_MS", 1)
    started[0].run()
    assert done == [0, 1, 2, 3, 4]
    assert len(started) == 2
    pool.close()


def test_jobs_that_wait_get_a_thread_each_also_when_they_come_at_once() -> None:
    pool = ThreadPool(8)
    together = threading.Barrier(8)
    done = threading.Semaphore(0)

    def job() -> None:
        together.wait(LIMIT_S)
        done.release()

    for _ in range(5):
        for _ in range(8):
            pool.submit(job)
        for _ in range(8):
            assert done.acquire(timeout=LIMIT_S)
    pool.close()


def test_no_job_is_forgotten_when_threads_end_while_jobs_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_threads, "THREAD_IDLE_MS", 0.2)
    pool = ThreadPool(4)
    done = threading.Semaphore(0)

    for number in range(1_000):
        pool.submit(done.release)
        assert done.acquire(timeout=LIMIT_S), number
    pool.close()


@pytest.mark.skipif(_threads._STARTS_EARLY, reason="this Python's threads never end")
def test_an_idle_thread_is_used_again_and_ends_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_threads, "THREAD_IDLE_MS", 20)
    pool = ThreadPool(4)
    threads: list[threading.Thread] = []
    done = threading.Semaphore(0)

    def job() -> None:
        threads.append(threading.current_thread())
        done.release()

    pool.submit(job)
    assert done.acquire(timeout=LIMIT_S)
    threads[0].join(LIMIT_S)
    assert not threads[0].is_alive()
    pool.submit(job)
    assert done.acquire(timeout=LIMIT_S)
    pool.close()


def test_a_closed_pool_drops_what_has_not_started() -> None:
    pool = ThreadPool(1)
    started, release = threading.Event(), threading.Event()
    ran: list[int] = []

    def job() -> None:
        started.set()
        release.wait(LIMIT_S)

    pool.submit(job)
    assert started.wait(LIMIT_S)
    pool.submit(lambda: ran.append(1))

    pool.close()
    pool.submit(lambda: ran.append(2))
    release.set()

    assert ran == []


@pytest.mark.skipif(_threads._STARTS_EARLY, reason="this Python starts all threads at once")
def test_a_pool_without_any_thread_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    pool = ThreadPool(1)
    monkeypatch.setattr(_threads.PoolThread, "start", refuse)

    with pytest.raises(RuntimeError, match="can't start"):
        pool.submit(lambda: None)


class CountingLoop:
    """A loop that counts wake-ups; a test runs the scheduled callbacks."""

    def __init__(self) -> None:
        self.woken = 0
        self.soon: list[Callable[[], None]] = []

    def call_soon_threadsafe(self, work: Callable[[], None]) -> None:
        self.woken += 1
        self.soon.append(work)

    def call_soon(self, work: Callable[[], None]) -> None:
        self.soon.append(work)

    def turn(self) -> None:
        works, self.soon = self.soon, []
        for work in works:
            work()


def mailbox(loop: Any, emptied: Callable[[], object] = lambda: None) -> Mailbox:
    return Mailbox(loop, -1, emptied)


def test_much_work_wakes_the_loop_once_and_is_done_in_order() -> None:
    loop = CountingLoop()
    done: list[Any] = []
    box = mailbox(loop, lambda: done.append("emptied"))

    for number in range(5):
        box.put(lambda number=number: done.append(number))  # type: ignore[misc]
    loop.turn()

    assert (loop.woken, done) == (1, [0, 1, 2, 3, 4, "emptied"])
    box.put(lambda: done.append(5))
    loop.turn()
    assert (loop.woken, done[-2:]) == (2, [5, "emptied"])


def test_work_put_while_the_loop_works_waits_for_its_next_iteration() -> None:
    loop, done = CountingLoop(), []
    box = mailbox(loop)

    def more() -> None:
        done.append("first")
        box.put(lambda: done.append("second"))

    box.put(more)
    loop.turn()
    assert done == ["first"]
    loop.turn()

    assert (loop.woken, done) == (1, ["first", "second"])


def test_work_that_fails_hurts_no_other(caplog: pytest.LogCaptureFixture) -> None:
    loop, done = CountingLoop(), []
    box = mailbox(loop)

    box.put(lambda: 1 / 0)
    box.put(lambda: done.append(1))
    loop.turn()

    assert done == [1]
    assert "because of a bug in the SDK" in caplog.text


def test_ctrl_c_in_the_middle_leaves_nothing_behind() -> None:
    loop, done = CountingLoop(), []
    box = mailbox(loop)

    def interrupt() -> None:
        raise KeyboardInterrupt

    box.put(interrupt)
    box.put(lambda: done.append(1))
    with pytest.raises(KeyboardInterrupt):
        loop.turn()
    loop.turn()

    assert done == [1]


def test_in_the_loops_own_thread_work_is_done_at_once() -> None:
    loop, done = CountingLoop(), []
    box = Mailbox(loop, threading.get_ident())  # type: ignore[arg-type]

    box.put(lambda: done.append(1))

    assert (loop.woken, done) == (0, [1])


def test_after_the_end_work_is_done_where_it_is_put() -> None:
    loop, done = CountingLoop(), []
    box = mailbox(loop)
    box.put(lambda: done.append("before"))

    box.close()
    box.put(lambda: done.append("after"))
    loop.turn()

    assert done == ["before", "after"]


def test_a_loop_that_was_closed_is_left_alone() -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    mailbox(loop).put(lambda: 1 / 0)


def test_nothing_is_lost_when_many_threads_put_and_the_end_comes_between() -> None:
    for _ in range(20):
        loop = asyncio.new_event_loop()
        box = mailbox(loop)
        done: list[int] = []
        runner = threading.Thread(target=loop.run_forever)
        runner.start()

        def put(box: Mailbox = box, done: list[int] = done) -> None:
            for _ in range(500):
                box.put(lambda: done.append(1))

        threads = [threading.Thread(target=put) for _ in range(4)]
        for thread in threads:
            thread.start()
        loop.call_soon_threadsafe(loop.stop)
        runner.join(LIMIT_S)
        box.close()
        loop.close()
        for thread in threads:
            thread.join(LIMIT_S)

        assert len(done) == 2_000


def test_all_who_ask_in_a_loop_share_its_mailbox_and_the_next_loop_has_another() -> None:
    async def two() -> list[Mailbox]:
        return [running_loop_mailbox(), running_loop_mailbox()]

    first, second = asyncio.run(two()), asyncio.run(two())

    assert first[0] is first[1]
    assert second[0] is second[1]
    assert first[0] is not second[0]
