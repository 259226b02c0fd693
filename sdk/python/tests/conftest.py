"""Fixtures of several test files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine_sdk import InitOptions, ReconnectOptions, Worker
from fakes import FakeEngine

Connect = Callable[..., Worker]
QUICK = ReconnectOptions(first_ms=1, max_ms=2)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("URL", "WORKER_NAME", "LAUNCH_ID", "ISOLATION", "OUTPUT_MARKS")
    for name in (*(f"ENGINE_{name}" for name in names), "OTEL_ENABLED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect workers to a FakeEngine; they are shut down after the test."""
    workers: list[Worker] = []

    def connect(engine: FakeEngine, telemetry: FakeEngine | None = None, **options: Any) -> Worker:
        given = {"worker_name": "tester", "reconnect": QUICK, **options}
        dial = None if telemetry is None else telemetry.dial
        worker = Worker("ws://fake:1", InitOptions(**given), engine.dial, dial)
        workers.append(worker)
        worker.start()
        return worker

    yield connect
    for worker in workers:
        worker.shutdown()


@pytest.fixture
def worker(engine: FakeEngine, connect: Connect) -> Worker:
    return connect(engine)
