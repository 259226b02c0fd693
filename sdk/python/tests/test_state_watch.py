"""Entries of the state that are followed, on an engine in memory."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from engine_sdk import EngineError, StateChange, StateWatch, Worker, _state_watch
from fakes import LIMIT_S, FakeEngine


class State:
    """The functions of ``engine-state`` that a watch calls, on the worker itself."""

    def __init__(self, worker: Worker, engine: FakeEngine) -> None:
        self.values: dict[str, tuple[Any, int]] = {}
        self.error: EngineError | None = None
        self.calls: list[str] = []
        self._version = 0
        self._worker = worker
        self._engine = engine
        worker.register_function("state::list_entries", self._list)
        worker.register_function("state::entry", self._entry)

    def set(self, key: str, value: Any, *, fires: bool = True) -> None:
        self._version += 1
        self.values[key] = (value, self._version)
        if fires:
            self.fire(key)

    def delete(self, key: str) -> None:
        del self.values[key]
        self.fire(key)

    def fire(self, key: str) -> None:
        """Call the function of each trigger, and wait until it has run."""
        frame = self._engine.of_type("registertrigger")[-1]
        self._worker.trigger({"function_id": frame["function_id"], "payload": {"key": key}})

    def _list(self, payload: Any) -> Any:
        self.calls.append("list")
        if self.error is not None:
            raise self.error
        assert payload["scope"] == "stock"
        keys = [key for key in sorted(self.values) if key > (payload["cursor"] or "")]
        page = keys[: payload["limit"]]
        entries = [
            {"key": key, "value": self.values[key][0], "version": self.values[key][1]}
            for key in page
        ]
        return {"entries": entries, **({"cursor": page[-1]} if len(keys) > len(page) else {})}

    def _entry(self, payload: Any) -> Any:
        self.calls.append(payload["key"])
        if self.error is not None:
            raise self.error
        if payload["key"] not in self.values:
            return None
        value, version = self.values[payload["key"]]
        return {"value": value, "version": version, "updated_at_ms": 1}


@pytest.fixture
def state(worker: Worker, engine: FakeEngine) -> State:
    return State(worker, engine)


class Reader:
    """Reads in a thread of its own."""

    def __init__(self, changes: Iterator[StateChange]) -> None:
        self._changes = changes
        self._reading: Future[StateChange | None] | None = None

    def start(self) -> Future[StateChange | None]:
        """Begin to read the next one; the result is None at the end."""
        future: Future[StateChange | None] = Future()

        def run() -> None:
            try:
                future.set_result(next(self._changes, None))
            except EngineError as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def next(self) -> StateChange | None:
        return self.start().result(LIMIT_S)


def is_open(future: Future[Any]) -> bool:
    try:
        future.result(0.05)
    except TimeoutError:
        return True
    except Exception as error:
        # Before Python 3.11 it is another class.
        return type(error).__name__ == "TimeoutError"
    return False


def test_a_watch_of_a_scope_has_its_entries_then_each_that_changed(
    worker: Worker, state: State
) -> None:
    state.set("apples", 3, fires=False)
    state.set("pears", None, fires=False)
    with worker.watch_state("stock") as changes:
        reader = Reader(changes)
        assert [reader.next(), reader.next()] == [("apples", 3, 1), ("pears", None, 2)]
        following = reader.start()
        assert is_open(following)

        state.set("plums", 5)
        assert following.result(LIMIT_S) == ("plums", 5, 3)
        state.delete("apples")
        assert reader.next() == ("apples", None, 0)
        state.set("apples", 1)
        assert reader.next() == ("apples", 1, 4)


def test_a_watch_of_a_key_begins_with_what_it_is_also_nothing(
    worker: Worker, state: State, engine: FakeEngine
) -> None:
    with worker.watch_state("stock", "apples") as changes:
        reader = Reader(changes)
        assert reader.next() == ("apples", None, 0)
        state.set("apples", 1)
        assert reader.next() == ("apples", 1, 1)
        state.delete("apples")
        assert reader.next() == ("apples", None, 0)

    frame = engine.of_type("registertrigger")[-1]
    assert frame["config"] == {"scope": "stock", "key": "apples"}
    assert "list" not in state.calls


def test_a_slow_program_gets_the_latest_value_of_each_key_once(
    worker: Worker, state: State
) -> None:
    state.set("a", 0, fires=False)
    with worker.watch_state("stock") as changes:
        reader = Reader(changes)
        assert reader.next() == ("a", 0, 1)
        for i in range(50):
            state.set("a", i)
            state.set("b", i)
        state.delete("a")

        assert [reader.next(), reader.next()] == [("a", None, 0), ("b", 49, 101)]
        assert is_open(reader.start())


def test_many_entries_come_in_pages_each_once(worker: Worker, state: State) -> None:
    count = 2 * _state_watch.PAGE_ENTRIES + 5
    for i in range(count):
        state.set(f"k{i}", i, fires=False)
    with worker.watch_state("stock") as changes:
        seen = [next(changes).key for _ in range(count)]

    assert sorted(seen) == sorted(state.values)
    assert state.calls == ["list"] * 3


def test_after_a_reconnect_only_differences_are_reported(
    worker: Worker, state: State, engine: FakeEngine
) -> None:
    for key in ("a", "b", "c"):
        state.set(key, 1, fires=False)
    with worker.watch_state("stock") as changes:
        reader = Reader(changes)
        assert [reader.next() for _ in range(3)] == [("a", 1, 1), ("b", 1, 2), ("c", 1, 3)]
        following = reader.start()
        assert is_open(following)
        state.set("b", 2, fires=False)
        del state.values["c"]
        engine.drop()

        assert following.result(LIMIT_S) == ("b", 2, 4)
        assert reader.next() == ("c", None, 0)


def test_a_watch_in_a_coroutine(worker: Worker, state: State) -> None:
    state.set("a", 1, fires=False)

    async def run() -> list[StateChange]:
        changes = worker.watch_state("stock")
        taken = [await anext(changes)]
        following = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0.02)
        assert not following.done()
        await asyncio.to_thread(state.set, "a", 2)
        taken.append(await following)
        last = asyncio.ensure_future(anext(changes, None))
        await asyncio.sleep(0.02)
        changes.close()
        assert await last is None
        return taken

    taken = asyncio.run(asyncio.wait_for(run(), LIMIT_S))

    assert taken == [("a", 1, 1), ("a", 2, 2)]


def test_the_first_read_raises_and_a_later_one_is_tried_again(
    worker: Worker, state: State, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_state_watch, "RETRY_FIRST_S", 0.001)
    monkeypatch.setattr(_state_watch, "RETRY_MAX_S", 0.002)
    state.error = EngineError("GET_ERROR", "the disk is gone")
    with pytest.raises(EngineError, match="GET_ERROR"):
        next(worker.watch_state("stock"))

    state.error = None
    state.set("a", 1, fires=False)
    with worker.watch_state("stock") as changes, caplog.at_level(logging.ERROR, "engine_sdk"):
        reader = Reader(changes)
        assert reader.next() == ("a", 1, 1)
        state.error = EngineError("GET_ERROR", "the disk is gone")
        state.set("a", 2)
        following = reader.start()
        assert is_open(following)
        state.error = None
        assert following.result(LIMIT_S) == ("a", 2, 2)

    texts = [each.getMessage() for each in caplog.records if "watch of state" in each.getMessage()]
    assert len(texts) == 1
    assert "stock waits" in texts[0]


def test_a_closed_watch_ends_and_leaves_nothing(worker: Worker, engine: FakeEngine) -> None:
    State(worker, engine)
    changes: StateWatch = worker.watch_state("stock")
    following = Reader(changes).start()
    assert is_open(following)
    changes.close()

    assert following.result(LIMIT_S) is None
    assert next(changes, None) is None
    engine.wait(lambda frame: frame["type"] == "unregisterfunction")
    kinds = [frame["type"] for frame in engine.frames if frame["type"].startswith("unregister")]
    assert kinds == ["unregistertrigger", "unregisterfunction"]


def test_a_watch_ends_with_its_worker(worker: Worker, state: State) -> None:
    following = Reader(worker.watch_state("stock")).start()
    assert is_open(following)

    worker.shutdown()

    assert following.result(LIMIT_S) is None


def test_a_watch_in_the_thread_of_the_worker_says_what_to_write(
    worker: Worker, state: State
) -> None:
    async def wrong(_payload: Any) -> None:
        next(worker.watch_state("stock"))

    worker.register_function("wrong", wrong)
    with pytest.raises(EngineError, match="await worker"):
        worker.trigger({"function_id": "wrong"})


@pytest.mark.parametrize("place", [("",), ("stock", "")])
def test_a_scope_or_key_that_is_none_is_refused(worker: Worker, place: tuple[str, ...]) -> None:
    with pytest.raises(EngineError, match="INVALID_ARGUMENTS"):
        worker.watch_state(*place)
