"""The threads of sync handlers."""

from __future__ import annotations

import threading

import pytest

from engine_sdk import _threads
from engine_sdk._threads import ThreadPool
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
