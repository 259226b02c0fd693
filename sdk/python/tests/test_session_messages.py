"""What a session makes of the messages of the engine."""

from __future__ import annotations

import logging

import pytest

from fakes import Bench, function, trigger_type


def test_an_invocation_is_answered_once_with_its_trace() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()
    trace = {"traceparent": "00-a-b-01", "baggage": "k=v"}
    message = {"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b", **trace}
    bench.receive({**message, "timeout_ms": 500, "metadata": 7, "caller": "w9", "data": [1]})

    invocation = bench.host.invocations[0]
    bench.session.progress(invocation, "1")
    bench.session.finish(invocation, "2", None)
    bench.session.progress(invocation, "3")
    bench.session.finish(invocation, "4", None)

    assert (invocation.payload, invocation.metadata, invocation.caller) == ([1], 7, "w9")
    assert invocation.deadline == 1_500
    ids = {"invocation_id": "e1", "function_id": "a::b"}
    assert bench.sent() == [
        {"type": "invocationprogress", "invocation_id": "e1", "data": 1},
        {"type": "invocationresult", **ids, **trace, "result": 2},
    ]


def test_an_invocation_without_an_id_runs_and_is_not_answered() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()

    bench.receive({"type": "invokefunction", "function_id": "a::b"})
    bench.session.finish(bench.host.invocations[0], "1", None)
    bench.receive({"type": "invokefunction", "function_id": "no::such"})

    assert bench.sent() == []


def test_an_unknown_function_is_answered_with_function_not_found() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()

    message = {"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"}
    bench.receive({**message, "namespace": "eu"})

    assert bench.sent()[0]["error"] == {
        "code": "function_not_found",
        "message": "Function not found",
    }


def test_a_second_invocation_with_an_id_that_runs_is_ignored() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()

    for _ in range(2):
        bench.receive({"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"})

    assert len(bench.host.invocations) == 1


def test_a_result_never_leaves_on_another_line_than_its_call_came_on() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()
    bench.receive({"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"})
    bench.session.closed()
    bench.open()
    bench.receive({"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"})

    bench.session.finish(bench.host.invocations[0], '"old"', None)
    bench.session.finish(bench.host.invocations[1], '"new"', None)

    assert [frame["result"] for frame in bench.sent()] == ["new"]


def test_progress_is_not_sent_to_an_engine_that_does_not_forward_it() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open(capabilities=["cancel"])
    bench.receive({"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"})

    bench.session.progress(bench.host.invocations[0], "1")

    assert bench.sent() == []


def test_a_cancel_reaches_the_handler_it_names_and_nobody_else() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()
    bench.receive({"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"})

    bench.receive({"type": "cancelinvocation", "invocation_id": "e1", "reason": "timeout"})
    bench.receive({"type": "cancelinvocation", "invocation_id": "e2"})
    bench.receive({"type": "cancelinvocation"})

    assert bench.host.aborted == [(bench.host.invocations[0], "timeout")]


def test_a_trigger_for_a_type_of_this_worker_is_provided_and_answered() -> None:
    bench = Bench()
    bench.session.add_type(trigger_type())
    bench.open()
    message = {"type": "registertrigger", "id": "t9", "trigger_type": "watch", "function_id": "f"}
    bench.receive({**message, "config": {"dir": "in"}, "metadata": 1})

    given, line = bench.host.provided[0]
    bench.session.answer_trigger(given, None, line)
    bench.session.answer_trigger(given, {"code": "c", "message": "m"}, line)
    bench.session.answer_trigger(given, None, line - 1)
    bench.receive({"type": "unregistertrigger", "id": "t9"})

    assert (given.config, given.metadata, given.function_id) == ({"dir": "in"}, 1, "f")
    result = {**message, "type": "triggerregistrationresult"}
    assert bench.sent() == [result, {**result, "error": {"code": "c", "message": "m"}}]
    assert bench.host.withdrawn == ["t9"]


def test_a_trigger_for_a_type_nobody_offers_is_answered_with_an_error() -> None:
    bench = Bench()
    bench.open()

    bench.receive(
        {"type": "registertrigger", "id": "t9", "trigger_type": "watch", "function_id": "f"}
    )

    assert bench.sent()[0]["error"]["code"] == "trigger_type_not_found"


def test_a_refused_trigger_is_said_on_the_console(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.open()
    result = {"type": "triggerregistrationresult", "id": "t1", "trigger_type": "http"}

    bench.receive(result)
    assert caplog.text == ""
    bench.receive({**result, "error": {"code": "x", "message": "route is taken"}})

    expected = '[engine] Trigger registration failed for "t1" (http): route is taken'
    assert [record.getMessage() for record in caplog.records] == [expected]
    assert caplog.records[0].levelno == logging.ERROR


def test_only_a_fatal_rejection_ends_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.open()
    rejected = {"type": "registrationrejected", "namespace": "default"}

    bench.receive({**rejected, "code": "FUNCTION_NAMESPACE_CONFLICT", "function_id": "engine::x"})
    assert bench.host.refusals == []
    bench.receive({**rejected, "code": "WORKER_NAMESPACE_CONFLICT", "worker_name": "w"})

    assert bench.host.refusals == ["The engine refused w: WORKER_NAMESPACE_CONFLICT"]
    assert "The engine refused engine::x" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "no json",
        "[]",
        "null",
        "{}",
        '{"type":5}',
        '{"type":"teleport"}',
        '{"type":"ping"}',
        '{"type":"pong"}',
        '{"type":"error"}',
        '{"type":"error","error":{"code":"bad_message","message":"m"}}',
        '{"type":"invokefunction"}',
        '{"type":"invokefunction","invocation_id":5,"function_id":null}',
        '{"type":"invocationresult"}',
        '{"type":"invocationresult","invocation_id":"nobody"}',
        '{"type":"invocationresult","invocation_id":["list"]}',
        '{"type":"invocationprogress","invocation_id":{}}',
        '{"type":"cancelinvocation","invocation_id":{}}',
        '{"type":"registertrigger"}',
        '{"type":"registertrigger","id":"t"}',
        '{"type":"unregistertrigger"}',
        '{"type":"triggerregistrationresult","error":7}',
        '{"type":"registrationrejected"}',
        '{"type":"workerregistered","worker_id":1,"capabilities":"all"}',
        '{"type":"workerregistered","capabilities":[[]]}',
    ],
)
def test_nothing_the_engine_may_send_stops_a_session(text: str) -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()
    answer = bench.call()
    bench.sent()

    bench.session.received(text)
    bench.receive({"type": "invocationresult", "invocation_id": "c1", "result": 1})
    bench.receive({"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"})

    assert answer.ends == [(1, None)]
    assert len(bench.host.invocations) == 1


def test_nobody_is_left_waiting_for_a_message_that_is_nested_too_deeply() -> None:
    bench = Bench()
    bench.open()
    answer = bench.call()
    bench.sent()
    deep = "[" * 200_000 + "]" * 200_000

    ids = '"invocation_id":"c1","function_id":"a::b"'
    bench.session.received(f'{{"type":"invocationresult",{ids},"result":{deep}}}')
    bench.session.received(f'{{"type":"invokefunction",{ids},"data":{deep}}}')

    assert answer.code == "deserialization_error"
    assert bench.sent()[0]["error"]["code"] == "deserialization_error"


def test_a_host_that_fails_does_not_stop_a_session(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()
    bench.host.invocations = None  # type: ignore[assignment]

    bench.receive({"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"})

    assert "Could not handle a message of type invokefunction" in caplog.text
