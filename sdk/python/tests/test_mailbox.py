"""Work of any thread for one loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from engine_sdk._mailbox import Mailbox, mailbox_here
from fakes import LIMIT_S


class CountingLoop:
    """A loop that notes who wakes it; a test runs what was asked for."""

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


def test_what_comes_while_the_loop_works_waits_for_its_next_turn() -> None:
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
    assert "failed by a bug" in caplog.text


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
        return [mailbox_here(), mailbox_here()]

    first, second = asyncio.run(two()), asyncio.run(two())

    assert first[0] is first[1]
    assert second[0] is second[1]
    assert first[0] is not second[0]
