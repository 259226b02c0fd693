"""The test engine: calls, fakes, time, queues, HTTP, triggers; and workers over several tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from engine_sdk import CallContext, EngineError, InitOptions, InvocationError, Worker, testing
from engine_sdk import register_worker as register
from engine_sdk._test_builtins import Schedule
from engine_sdk.testing import TestEngine, engine
from fakes import LIMIT_S

__all__ = ["engine"]


@pytest.fixture
def worker(engine: TestEngine) -> Iterator[Worker]:
    worker = register(options=InitOptions(worker_name="orders"))
    yield worker
    worker.shutdown()


def test_a_test_calls_functions_and_sees_what_they_call(engine: TestEngine, worker: Worker) -> None:
    def create(payload: Any, metadata: Any) -> Any:
        request = {"to": payload["to"], "text": "hi"}
        sent = worker.trigger({"function_id": "mail::send", "payload": request})
        return {"sent": sent, "metadata": metadata}

    worker.register_function("orders::create", create)
    mail = engine.fake("mail::send", lambda payload: {"to": payload["to"]})

    result = engine.call("orders::create", {"to": "a@b.c"}, metadata={"dry": True})

    assert result == {"sent": {"to": "a@b.c"}, "metadata": {"dry": True}}
    engine.assert_called("mail::send", {"to": "a@b.c"})
    engine.assert_not_called("mail::delete")
    payload = {"to": "a@b.c", "text": "hi"}
    assert mail.calls == [
        testing.SeenCall("mail::send", payload, None, "orders", {"to": "a@b.c"}, None)
    ]
    with pytest.raises(AssertionError, match="its calls:"):
        engine.assert_called("mail::send", {"to": "x"})
    with pytest.raises(AssertionError, match="it was not called"):
        engine.assert_called("mail::delete")
    with pytest.raises(AssertionError, match="was called with"):
        engine.assert_not_called("mail::send")


def test_errors_arrive_with_code_and_details(engine: TestEngine, worker: Worker) -> None:
    def take(_payload: Any) -> Any:
        try:
            worker.trigger({"function_id": "stock::check"})
        except InvocationError as error:
            raise EngineError("sold_out", "None left", {"cause": error.code}) from None

    def busy(_payload: Any) -> Any:
        raise EngineError("busy", "Later")

    worker.register_function("stock::take", take)
    fake = engine.fake("stock::check", busy)

    with pytest.raises(EngineError) as raised:
        engine.call("stock::take")
    assert (raised.value.code, raised.value.details) == ("sold_out", {"cause": "busy"})
    fake.remove()
    with pytest.raises(EngineError) as raised:
        engine.call("stock::check")
    assert raised.value.code == "function_not_found"


def test_a_deadline_passes_with_the_time_of_the_test(engine: TestEngine, worker: Worker) -> None:
    reasons: list[str | None] = []

    async def wait(_payload: Any, _metadata: Any, context: CallContext) -> Any:
        try:
            await asyncio.sleep(LIMIT_S)
        except asyncio.CancelledError:
            reasons.append(context.cancel_reason)
            raise

    worker.register_function("slow::wait", wait)
    call = {"function_id": "slow::wait", "payload": None, "timeout_ms": 5_000}
    engine.settle()  # The registration has arrived.
    waiting = engine._routing.call(call)
    engine.advance(4_999)
    assert not waiting.done()
    engine.advance(1)

    with pytest.raises(EngineError, match="timed out after 5000 ms"):
        waiting.result(LIMIT_S)
    engine.settle()
    assert reasons == ["timeout"]


def test_jobs_run_again_after_a_delay_and_are_dead_in_the_end(worker: Worker) -> None:
    with TestEngine(queues=["mail"]) as engine:
        attempts: list[int] = []

        def send(_payload: Any) -> Any:
            attempts.append(1)
            raise EngineError("busy", "Later")

        worker.register_function("mail::send", send)
        assert worker.enqueue("mail::send", queue="mail", id="m1") == {"messageReceiptId": "m1"}
        engine.settle()
        assert (len(attempts), engine.jobs("mail")[0].state) == (1, "delayed")
        engine.advance(1_000)
        assert len(attempts) == 2
        engine.advance(1_999)  # The delay doubles.
        assert len(attempts) == 2
        engine.advance(1)

        job = engine.jobs("mail")[0]
        assert (job.state, job.attempts, job.error and job.error["code"]) == ("dead", 3, "busy")
        assert worker.enqueue("mail::send", queue="mail", id="m1")["duplicate"] is True
        with pytest.raises(InvocationError, match="not found"):
            worker.enqueue("mail::send", queue="none")


def test_a_job_waits_for_its_time_and_its_function(engine: TestEngine, worker: Worker) -> None:
    job = engine.enqueue("late::run", {"n": 1}, delay_ms=60_000)
    assert job.state == "delayed"
    engine.advance(60_000)
    assert job.state == "waiting"

    worker.register_function("late::run", lambda payload: payload, queue={"max_retries": 1})
    engine.settle()

    assert job.state == "done"
    engine.fake("late::run", lambda _payload: 1 / 0)
    assert engine.enqueue("late::run", 2, "late::run").state == "dead"


def test_jobs_of_a_group_run_one_at_a_time(engine: TestEngine, worker: Worker) -> None:
    order: list[str] = []

    async def book(payload: Any) -> None:
        order.append(f"{payload['n']} begins")
        await asyncio.sleep(0.002)
        order.append(f"{payload['n']} ends")

    queue = {"name": "bank", "type": "fifo", "message_group_field": "account"}
    worker.register_function("bank::book", book, queue=queue)
    for n in (1, 2):
        worker.enqueue("bank::book", {"account": "a", "n": n}, queue="bank")
    engine.settle()
    engine.settle()

    assert order == ["1 begins", "1 ends", "2 begins", "2 ends"]


def test_schedules_fire_as_time_passes(worker: Worker) -> None:
    with TestEngine(now=datetime(2026, 3, 1, 11, 59, 30, tzinfo=timezone.utc)) as engine:
        times: list[str] = []
        worker.register_function("report::write", lambda p: times.append(p["scheduled_time"]))
        trigger = worker.register_trigger(
            {
                "type": "cron",
                "function_id": "report::write",
                "config": {"expression": "0 0 12 * * *"},
            }
        )
        engine.advance(30_000)
        engine.advance(86_400_000)
        trigger.unregister()
        engine.advance(86_400_000)

        assert times == ["2026-03-01T12:00:00+00:00", "2026-03-02T12:00:00+00:00"]


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("*/5 * * * * *", "2026-01-01T00:00:00", "2026-01-01T00:00:05"),
        ("0 30 9 * * MON-FRI", "2026-01-02T09:30:00", "2026-01-05T09:30:00"),
        ("0 0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 0 1 JAN,jul ? 2026", "2026-01-01T00:00:00", "2026-07-01T00:00:00"),
        ("0 0 0 13 * FRI", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
        ("0 0 0 * * 7", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("0 10/20 1 * * *", "2026-01-01T01:10:00", "2026-01-01T01:30:00"),
        ("0 0 0 31 2 *", "2026-01-01T00:00:00", None),
    ],
)
def test_an_expression_has_its_next_time(expression: str, after: str, expected: str | None) -> None:
    start = datetime.fromisoformat(f"{after}+00:00").timestamp() * 1000
    found = Schedule(expression).next(start)

    wanted = None if expected is None else datetime.fromisoformat(f"{expected}+00:00").timestamp()
    assert found == (None if wanted is None else wanted * 1000)


@pytest.mark.parametrize(
    "expression", ["* * * * *", "60 * * * * *", "* * * * FOO *", "*/0 * * * * *"]
)
def test_an_expression_may_be_wrong(expression: str) -> None:
    with pytest.raises(ValueError, match="Cron"):
        Schedule(expression)


def test_a_route_gets_the_request_as_the_engine_sends_it(
    engine: TestEngine, worker: Worker
) -> None:
    seen: list[Any] = []
    worker.register_function("orders::change", seen.append)
    worker.register_function("orders::any", lambda payload: {"status_code": 201, "body": [1]})
    config = {"api_path": "orders/:id", "http_method": "post"}
    worker.register_trigger({"type": "http", "function_id": "orders::change", "config": config})
    worker.register_trigger(
        {"type": "http", "function_id": "orders::any", "config": {"api_path": "/any/*"}}
    )

    response = engine.http(
        "POST", "/orders/a%2Fb?x=1&x=2&y=3", body={"qty": 3}, headers={"X-A": "b"}
    )

    json_type = {"content-type": "application/json"}
    assert response == testing.Response(200, json_type, {})
    assert seen == [
        {
            "path": "orders/:id",
            "method": "POST",
            "path_params": {"id": "a/b"},
            "query_params": {"x": "2", "y": "3"},
            "query_string": "x=1&x=2&y=3",
            "query_params_all": {"x": ["1", "2"], "y": ["3"]},
            "headers": {"host": "localhost", "x-a": "b", **json_type},
            "body": {"qty": 3},
            "trigger": {"type": "http", "path": "orders/:id", "method": "POST"},
        }
    ]
    assert engine.http("GET", "/any/x/y") == testing.Response(201, json_type, [1])
    assert engine.http("GET", "/any").status == 404
    engine.fake("orders::any", lambda _payload: 1 / 0)
    assert engine.http("GET", "/any/x").status == 500


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("hi", testing.Response(200, {"content-type": "text/plain"}, "hi")),
        (
            {"headers": ["Content-Type: text/html"], "body": "<p>"},
            testing.Response(200, {"content-type": "text/html"}, "<p>"),
        ),
        (
            {"headers": {"content-type": "application/json"}, "body": "[1]"},
            testing.Response(200, {"content-type": "application/json"}, [1]),
        ),
        (
            {"body_base64": "YWJj"},
            testing.Response(200, {"content-type": "application/octet-stream"}, b"abc"),
        ),
    ],
)
def test_a_response_has_the_parts_of_the_result(
    engine: TestEngine, worker: Worker, result: Any, expected: Any
) -> None:
    worker.register_function("r::r", lambda _payload: result)
    config = {"api_path": "/r"}
    worker.register_trigger({"type": "http", "function_id": "r::r", "config": config})

    assert engine.http("GET", "/r") == expected


def test_conditions_queues_and_missing_functions_have_their_statuses(
    engine: TestEngine, worker: Worker
) -> None:
    for path, config in (
        ("/c", {"condition_function_id": "r::allowed"}),
        ("/q", {"enqueue": "default"}),
        ("/gone", {}),
    ):
        route = {"api_path": path, **config}
        worker.register_trigger({"type": "http", "function_id": "r::gone", "config": route})
    engine.fake("r::allowed", False)

    assert [engine.http("GET", path).status for path in ("/c", "/q", "/gone")] == [422, 202, 503]


def test_the_state_keeps_values_with_versions_until_they_expire(
    engine: TestEngine, worker: Worker
) -> None:
    events: list[str] = []
    worker.register_function("cart::changed", lambda event: events.append(event["event_type"]))
    config = {"scope": "cart"}
    worker.register_trigger({"type": "state", "function_id": "cart::changed", "config": config})
    at = {"scope": "cart", "key": "u1"}

    assert engine.call("state::set", {**at, "value": 1}) == {"old_value": None, "new_value": 1}
    assert engine.call("state::get", at) == 1
    with pytest.raises(EngineError) as raised:
        engine.call("state::set", {**at, "value": 2, "expected_version": 7})
    assert raised.value.details == {"current_version": 1}
    engine.call("state::set", {"scope": "cart", "key": "u0", "value": 5, "ttl_ms": 1_000})
    assert engine.call("state::list", {"scope": "cart"}) == [1, 5]
    entries = engine.call("state::list_entries", {"scope": "cart", "prefix": "u0"})
    assert entries == {"entries": [{"key": "u0", "value": 5, "version": 2}]}
    engine.advance(1_000)
    assert engine.call("state::list_groups") == {"groups": ["cart"]}
    assert engine.call("state::delete", at) == 1
    assert engine.call("state::delete", at) is None
    engine.settle()
    assert events == ["state:created", "state:created", "state:deleted", "state:deleted"]


def test_update_applies_operations_and_lists_those_that_fail(engine: TestEngine) -> None:
    ops = [
        {"type": "increment", "path": "n", "by": 2},
        {"type": "append", "path": "log", "value": {"at": 1}},
        {"type": "merge", "path": ["meta", "ui"], "value": {"dark": True}},
        {"type": "set", "path": "x", "value": 1},
        {"type": "remove", "path": "x"},
        {"type": "decrement", "path": "log", "by": 1},
    ]

    changed = engine.call("state::update", {"scope": "s", "key": "k", "ops": ops})

    assert changed["new_value"] == {"n": 2, "log": [{"at": 1}], "meta": {"ui": {"dark": True}}}
    assert [(e["op_index"], e["code"]) for e in changed["errors"]] == [(5, "decrement.not_number")]


def test_messages_and_triggers_are_fired(engine: TestEngine, worker: Worker) -> None:
    heard: list[Any] = []
    worker.subscribe("orders.*", heard.append)
    watched: list[Any] = []
    worker.register_trigger_type(
        {"id": "file-watch", "description": ""},
        lambda trigger: watched.append(trigger.config),
        lambda _trigger: watched.append("stopped"),
    )
    trigger = worker.register_trigger(
        {"type": "file-watch", "function_id": "docs::index", "config": {"dir": "inbox"}}
    )
    index = engine.fake("docs::index", None)

    engine.publish("orders.created", {"id": 7})
    worker.publish("orders.paid.late", 8)
    engine.fire("file-watch", {"path": "a.txt"}, config={"dir": "inbox"})
    trigger.unregister()
    engine.settle()

    assert heard == [{"id": 7}]
    assert index.calls[0].payload == {"path": "a.txt"}
    assert watched == [{"dir": "inbox"}, "stopped"]
    with pytest.raises(EngineError, match="No trigger"):
        engine.fire("file-watch", {}, function_id="x::y")


class TestSeveralTests:
    """A worker of a module is registered once, and serves each test."""

    shared: list[Worker] = []  # noqa: RUF012 - what a module has

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_a_worker_has_each_engine_to_itself(self, engine: TestEngine, number: int) -> None:
        if not self.shared:
            self.shared.append(register(options=InitOptions(worker_name="shared")))
            self.shared[0].register_function("a::b", lambda payload: payload)

        assert engine.call("a::b", number) == number
        assert len(engine.calls()) == 1
