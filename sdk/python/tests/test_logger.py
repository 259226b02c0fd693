"""Log lines: on the console, and to the engine."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from conftest import Connect
from engine_sdk import Logger, Worker
from engine_sdk._process import PROCESS
from fakes import FakeEngine


class Sour:
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


@pytest.mark.parametrize("level", ["trace", "debug", "info", "warn", "error"])
def test_each_level_goes_to_the_console_and_to_the_engine(
    worker: Worker, engine: FakeEngine, capsys: pytest.CaptureFixture[str], level: str
) -> None:
    getattr(Logger(worker), level)("order accepted", {"order": 7})

    frame = engine.wait(lambda frame: frame.get("function_id") == f"engine::log::{level}")
    assert frame["action"] == {"type": "void"}
    expected = {"message": "order accepted", "data": {"order": 7}, "service_name": "tester"}
    assert frame["data"] == expected
    out, err = capsys.readouterr()
    written = err if level in ("warn", "error") else out
    assert written == f'{level.upper():<5} [tester] order accepted {{"order": 7}}\n'


def test_a_logger_without_a_worker_speaks_for_the_one_registered_last(
    worker: Worker, engine: FakeEngine
) -> None:
    PROCESS.add(worker)
    try:
        Logger(service_name="shop").info("hello")
    finally:
        PROCESS.remove(worker)

    frame = engine.wait(lambda frame: frame.get("function_id") == "engine::log::info")
    assert frame["data"] == {"message": "hello", "service_name": "shop"}


def test_a_logger_without_any_worker_writes_to_the_console(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Logger().info("alone")

    assert capsys.readouterr().out == "INFO  alone\n"


def test_a_line_of_a_handler_carries_its_trace(worker: Worker, engine: FakeEngine) -> None:
    worker.register_function("a::b", lambda _: Logger(worker).info("inside"))
    ids = {"invocation_id": "e-x", "function_id": "a::b"}
    trace, span = "a" * 32, "b" * 16
    engine.send({"type": "invokefunction", **ids, "traceparent": f"00-{trace}-{span}-00"})

    frame = engine.wait(lambda frame: frame.get("function_id") == "engine::log::info")
    assert (frame["data"]["trace_id"], frame["data"]["span_id"]) == (trace, span)


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ("text", float("nan")),
        ("text", {1, 2}),
        (Sour(), None),
        ("text", Sour()),
        (None, {"a": Sour()}),
    ],
)
def test_a_logger_never_raises_whatever_it_is_given(
    worker: Worker, engine: FakeEngine, message: Any, data: Any
) -> None:
    Logger(worker).info(message, data)

    assert engine.wait(lambda frame: frame.get("function_id") == "engine::log::info")


def test_a_logger_without_a_console_still_tells_the_engine(
    worker: Worker, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    Logger(worker).info("unheard")

    assert engine.wait(lambda frame: frame.get("function_id") == "engine::log::info")


def test_the_queue_of_a_disconnected_logger_is_bounded(
    connect: Connect, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    worker = connect(engine)
    logger = Logger(worker)
    worker.shutdown()
    monkeypatch.setattr(worker, "trigger", sent.append)
    monkeypatch.setattr("engine_sdk._logger.OFFLINE_LOG_LINES_MAX", 3)

    worker._thread.state = "reconnecting"
    for _ in range(5):
        logger.info("waiting")
    worker._thread.state = "connected"
    logger.info("back")
    worker._thread.state = "reconnecting"
    logger.info("again")
    worker._thread.state = "failed"
    logger.info("gone")

    assert [request["payload"]["message"] for request in sent] == ["waiting"] * 3 + [
        "back",
        "again",
    ]
