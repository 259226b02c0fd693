"""Telemetry of a worker, over its connection to ``/otel``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from conftest import Connect
from engine_sdk import EngineError, InitOptions, Logger, Worker, _telemetry
from engine_sdk._codec import Invocation
from engine_sdk._telemetry import (
    TELEMETRY_FRAME_CHARS_MAX,
    Gauges,
    Telemetry,
    TelemetryQueue,
    TokenBucket,
    telemetry_dial,
)
from engine_sdk._transport import WebSocketDial
from fakes import LIMIT_S, FakeEngine

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def receiver() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def observed(engine: FakeEngine, receiver: FakeEngine, connect: Connect) -> Worker:
    """Make a worker that sends telemetry to the receiver."""
    return connect(engine, receiver)


def records(frame: dict[str, Any]) -> list[dict[str, Any]]:
    (groups,) = frame.values()
    inner = [next(value for key, value in group.items() if key != "resource") for group in groups]
    return [
        record for [scope] in inner for record in next(v for k, v in scope.items() if k != "scope")
    ]


def values(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {item["key"]: next(iter(item["value"].values())) for item in attributes}


def resource(frame: dict[str, Any]) -> dict[str, Any]:
    (groups,) = frame.values()
    return values(groups[0]["resource"]["attributes"])


def invoke(engine: FakeEngine, function_id: str, invocation_id: str = "e-1") -> None:
    ids = {"invocation_id": invocation_id, "function_id": function_id}
    engine.send({"type": "invokefunction", **ids, "traceparent": TRACEPARENT})


def test_log_lines_are_telemetry_with_the_trace_of_their_call(
    observed: Worker, engine: FakeEngine, receiver: FakeEngine
) -> None:
    observed.register_function("a::b", lambda _: Logger(observed).info("sold", {"order": 7}))
    invoke(engine, "a::b")

    frame = receiver.wait_telemetry("LOGS")
    [record] = records(frame)
    assert record["body"] == {"stringValue": "sold"}
    assert (record["traceId"], record["spanId"]) == (TRACE, SPAN)
    assert values(record["attributes"]) == {"order": "7"}
    who = resource(frame)
    assert (who["service.name"], who["service.instance.id"]) == ("tester", "w1")
    assert who["telemetry.sdk.language"] == "python"
    assert not [frame for frame in engine.frames if "engine::log" in str(frame)]


def test_a_logger_may_speak_for_another_service(observed: Worker, receiver: FakeEngine) -> None:
    Logger(observed, "billing").error("lost")

    assert resource(receiver.wait_telemetry("LOGS"))["service.name"] == "billing"


def raise_sold_out(_: Any) -> None:
    raise EngineError("sold_out", "Only 2 left")


async def succeed(_: Any) -> int:
    return 1


@pytest.mark.parametrize(
    ("handler", "status", "code"),
    [
        (lambda _: 1, {"code": 1}, None),
        (succeed, {"code": 1}, None),
        (lambda _: succeed(None), {"code": 1}, None),
        (raise_sold_out, {"code": 2, "message": "Only 2 left"}, "sold_out"),
    ],
)
def test_a_handler_becomes_a_span(
    observed: Worker,
    engine: FakeEngine,
    receiver: FakeEngine,
    handler: Any,
    status: dict[str, Any],
    code: str | None,
) -> None:
    observed.register_function("a::b", handler)
    invoke(engine, "a::b")

    [span] = records(receiver.wait_telemetry("OTLP"))
    assert (span["name"], span["traceId"], span["parentSpanId"]) == ("execute a::b", TRACE, SPAN)
    assert span["status"] == status
    attributes = values(span["attributes"])
    assert attributes.get("engine.error_code") == code
    assert (attributes["engine.function.id"], attributes["engine.invocation.id"]) == ("a::b", "e-1")
    assert 0 <= int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) < LIMIT_S * 1e9


def test_the_span_of_a_cancelled_handler_has_its_error(
    observed: Worker, engine: FakeEngine, receiver: FakeEngine
) -> None:
    observed.register_function("a::b", lambda _payload, _metadata, run: run.wait_cancelled(LIMIT_S))
    invoke(engine, "a::b")
    engine.send({"type": "cancelinvocation", "invocation_id": "e-1"})

    [span] = records(receiver.wait_telemetry("OTLP"))
    assert values(span["attributes"])["engine.error_code"] == "cancelled"


def test_the_gauges_of_the_process_are_sent(
    engine: FakeEngine,
    receiver: FakeEngine,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_telemetry, "GAUGES_FIRST_MS", 100)
    connect(engine, receiver)

    gauges = records(receiver.wait_telemetry("MTRC"))
    names = [gauge["name"] for gauge in gauges]
    assert names[-2:] == ["engine.event_loop.lag.p99", "engine.event_loop.lag.max"]
    assert "process.cpu.utilization" in names


def test_the_telemetry_connection_is_reopened(
    engine: FakeEngine, receiver: FakeEngine, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_telemetry, "wait_before", lambda *_: 1.0)
    receiver.refuse = "HTTP 401"
    worker = connect(engine, receiver)
    receiver.wait_dials(3)
    Logger(worker).info("waits")
    receiver.refuse = None

    assert records(receiver.wait_telemetry("LOGS"))[0]["body"]["stringValue"] == "waits"
    dials = receiver.dials
    receiver.drop()
    receiver.wait_dials(dials + 1)
    assert worker.connection_state == "connected"


def test_what_is_said_last_is_sent(observed: Worker, receiver: FakeEngine) -> None:
    Logger(observed).info("first")
    receiver.wait_telemetry("LOGS")
    receiver.telemetry.clear()

    Logger(observed).info("good bye")
    observed.shutdown()
    Logger(observed).info("too late")

    assert records(receiver.telemetry[0][1])[0]["body"]["stringValue"] == "good bye"
    assert len(receiver.telemetry) == 1


def test_the_last_records_take_the_workers_own_connection_if_need_be(
    engine: FakeEngine, receiver: FakeEngine, connect: Connect
) -> None:
    receiver.refuse = "HTTP 404"
    worker = connect(engine, receiver)
    receiver.wait_dials(1)

    Logger(worker).info("good bye")
    worker.shutdown()

    [(signal, frame)] = engine.telemetry
    assert signal == "LOGS"
    assert records(frame)[0]["body"]["stringValue"] == "good bye"


def test_a_flood_is_bounded_and_says_what_is_missing(
    engine: FakeEngine, receiver: FakeEngine, connect: Connect
) -> None:
    receiver.refuse = "later"
    worker = connect(engine, receiver)
    assert worker.telemetry is not None
    taken = 0
    while worker.telemetry.take_log("info", "x" * 10_000, None, None):
        taken += 1
    worker.shutdown()

    sent = [record for _, frame in engine.telemetry for record in records(frame)]
    [missing] = [record for record in sent if record["severityText"] == "WARN"]
    assert values(missing["attributes"]) == {"lines": "1"}
    assert len(sent) == taken + 1
    assert len(engine.telemetry) > 3


def test_only_so_many_spans_are_made_in_a_second(observed: Worker) -> None:
    telemetry = observed.telemetry
    assert telemetry is not None
    begun = [telemetry.begin(_invocation(TRACEPARENT)) for _ in range(500)]

    assert 100 <= sum(span is not None for span in begun) < 200


@pytest.mark.parametrize("traceparent", [None, "nonsense", f"00-{TRACE}-{SPAN}-00"])
def test_a_call_that_is_not_traced_makes_no_span(observed: Worker, traceparent: str | None) -> None:
    assert observed.telemetry is not None

    assert observed.telemetry.begin(_invocation(traceparent)) is None


def _invocation(traceparent: str | None) -> Invocation:
    return Invocation("1", "a::b", None, None, None, None, traceparent, None, None, 1)


def test_telemetry_takes_its_own_route_with_the_token_only() -> None:
    options = InitOptions(token="t", headers={"x-a": "1", "authorization": "Basic x"})

    dial = telemetry_dial("ws://host:1/base/?token=x", options)
    other = telemetry_dial("ws://host:1", InitOptions(headers=options.headers))

    assert dial == WebSocketDial("ws://host:1/base/otel?token=x", "t", {}, batch=False)
    assert other == WebSocketDial(
        "ws://host:1/otel", None, {"authorization": "Basic x"}, batch=False
    )


@pytest.mark.parametrize("value", ["false", "False", "0"])
def test_a_variable_switches_telemetry_off(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OTEL_ENABLED", value)

    assert telemetry_dial("ws://host:1", InitOptions()) is None


def test_an_option_switches_telemetry_off() -> None:
    assert telemetry_dial("ws://host:1", InitOptions(telemetry=False)) is None
    assert Worker("ws://127.0.0.1:1", InitOptions(telemetry=False)).telemetry is None
    assert isinstance(Worker("ws://127.0.0.1:1", InitOptions()).telemetry, Telemetry)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", 5_000), ("700", 700), ("1", 500), ("1e12", 3_600_000), ("rubbish", 5_000)],
)
def test_the_standard_variable_says_how_often(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: float
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", value)

    assert _telemetry._gauges_ms() == expected


def test_records_come_out_oldest_first_by_service() -> None:
    queue = TelemetryQueue()
    for service, text in [("shop", "1"), ("mail", "2"), ("shop", "3")]:
        assert queue.add(service, text)

    assert queue.take_frame() == {"shop": ["1", "3"], "mail": ["2"]}
    assert len(queue) == 0
    assert queue.take_frame() == {}


def test_what_finds_no_room_is_counted_once() -> None:
    queue = TelemetryQueue(10)

    assert [queue.add("shop", text) for text in ("12345", "67890", "x")] == [True, True, False]
    assert [queue.take_dropped(), queue.take_dropped()] == [1, 0]
    queue.take_frame()
    assert queue.add("shop", "1234567890")


def test_frames_are_cut_by_size_but_hold_at_least_one_record() -> None:
    queue = TelemetryQueue(10 * TELEMETRY_FRAME_CHARS_MAX)
    half, large = "x" * (TELEMETRY_FRAME_CHARS_MAX // 2), "y" * (2 * TELEMETRY_FRAME_CHARS_MAX)
    for text in (half, half, half, large, "z"):
        queue.add("shop", text)

    frames = []
    while len(queue):
        frames.append("".join(text[0] for text in queue.take_frame()["shop"]))

    assert frames == ["xx", "x", "y", "z"]


def test_a_bucket_gives_a_seconds_worth_and_fills_with_time() -> None:
    bucket = TokenBucket(100, 0.0)

    def take_all(now_ms: float) -> int:
        return sum(bucket.take(now_ms) for _ in range(500))

    assert [take_all(0), take_all(250), take_all(60_250), take_all(0)] == [100, 25, 100, 0]


class Machine:
    """A clock and a processor that a test controls."""

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


def test_the_lag_is_read_as_maximum_and_p99_and_only_once() -> None:
    machine = Machine()
    for n in range(200):
        machine.gauges.note_lag({7: 0.4, 8: 0.1}.get(n, 0.002))
    machine.gauges.note_lag(-1.0)

    observed = machine.read()

    assert observed == {"engine.event_loop.lag.p99": 0.002, "engine.event_loop.lag.max": 0.4}
    assert machine.read() == {}


def test_only_so_many_samples_are_kept() -> None:
    machine = Machine()
    for n in range(_telemetry._SAMPLES_MAX + 1):
        machine.gauges.note_lag(9.0 if n == 0 else 1.0)

    assert machine.read()["engine.event_loop.lag.max"] == 1.0


def test_memory_is_read_where_the_system_reports_it(tmp_path: Path) -> None:
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
