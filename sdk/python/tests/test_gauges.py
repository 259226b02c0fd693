"""What a process uses, and how late its loop is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from engine_sdk import _gauges
from engine_sdk._gauges import Gauges


class Machine:
    """A clock and a processor in the hands of a test."""

    def __init__(self) -> None:
        self.now = 100.0
        self.processor = 5.0
        self.gauges = Gauges(lambda: self.now, lambda: self.processor, "/no/such/file")

    def read(self) -> dict[str, float]:
        return {gauge.name: gauge.value for gauge in self.gauges.read()}


def test_the_share_of_a_processor_is_that_since_the_last_time() -> None:
    machine = Machine()
    machine.now, machine.processor = 110.0, 10.0
    first = machine.read()
    machine.now = 120.0

    assert first == {"process.cpu.utilization": 0.5}
    assert machine.read() == {"process.cpu.utilization": 0.0}
    assert machine.read() == {}


def test_the_lag_is_told_at_worst_and_mostly_and_only_once() -> None:
    machine = Machine()
    for n in range(200):
        machine.gauges.note_lag({7: 0.4, 8: 0.1}.get(n, 0.002))
    machine.gauges.note_lag(-1.0)

    told = machine.read()

    assert told == {"engine.event_loop.lag.p99": 0.002, "engine.event_loop.lag.max": 0.4}
    assert machine.read() == {}


def test_only_so_many_samples_are_kept() -> None:
    machine = Machine()
    for n in range(_gauges._SAMPLES_MAX + 1):
        machine.gauges.note_lag(9.0 if n == 0 else 1.0)

    assert machine.read()["engine.event_loop.lag.max"] == 1.0


def test_memory_is_told_where_the_system_tells_it(tmp_path: Path) -> None:
    statm = tmp_path / "statm"
    statm.write_text("1000 250 1 1 0 1 0\n")
    known = {gauge.name: gauge for gauge in Gauges(statm=str(statm)).read()}
    statm.write_text("rubbish")
    unknown = {gauge.name for gauge in Gauges(statm=str(statm)).read()}

    memory = known["process.memory.usage"]
    assert memory.unit == "By"
    assert memory.value % 250 == 0
    assert memory.value >= 250 * 1024
    assert "process.memory.usage" not in unknown


def test_a_loop_that_is_blocked_is_late() -> None:
    gauges = Gauges()

    async def block() -> None:
        task = asyncio.ensure_future(gauges.watch_loop())
        await asyncio.sleep(0)
        blocked_until = asyncio.get_running_loop().time() + 0.2
        while asyncio.get_running_loop().time() < blocked_until:
            pass
        await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(block())

    lag = next(g.value for g in gauges.read() if g.name == "engine.event_loop.lag.max")
    assert lag >= 0.1
