"""A session without sockets and clocks: its connections, the engine's messages, its calls."""

from __future__ import annotations

import json
import logging

import pytest

from fakes import ANNOUNCEMENT, Bench, function, trigger, trigger_type


def test_the_first_connection_sends_announcement_types_functions_triggers_calls() -> None:
    bench = Bench()
    bench.call("x::y", payload="1")
    bench.session.add_trigger(trigger())
    bench.session.add_function(function("a::b"))
    bench.session.add_type(trigger_type())

    frames = bench.open()

    assert frames[0] == json.loads(ANNOUNCEMENT)
    assert [frame["type"] for frame in frames[1:]] == [
        "registertriggertype",
        "registerfunction",
        "registertrigger",
        "invokefunction",
    ]
    assert frames[4]["data"] == 1


def test_every_later_connection_begins_with_reattach_to_the_previous_one() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open(worker_id="w1", reattach_token="t1")

    bench.session.closed("1006")
    second = bench.open(worker_id="w2", reattach_token="t2")
    bench.session.closed("1006")
    third = bench.open()

    expected = {"type": "reattach", "previous_worker_id": "w1", "reattach_token": "t1"}
    assert second[0] == expected
    assert third[0] == {**expected, "previous_worker_id": "w2", "reattach_token": "t2"}
    assert [frame["type"] for frame in second[1:]] == ["invokefunction", "registerfunction"]


def test_registrations_made_without_a_connection_are_sent_once() -> None:
    bench = Bench()
    bench.open()
    bench.session.closed("1006")

    bench.session.add_function(function("a::b"))
    frames = bench.open()

    assert sum(frame["type"] == "registerfunction" for frame in frames) == 1
    assert bench.sent() == []


def test_what_was_unregistered_without_a_connection_is_not_sent_again() -> None:
    bench = Bench()
    registered, type_ = function("a::b"), trigger_type()
    bench.session.add_function(registered)
    bench.session.add_type(type_)
    bench.open()
    bench.session.closed("1006")

    bench.session.remove_function(registered)
    bench.session.remove_type(type_)

    assert [frame["type"] for frame in bench.open()] == ["reattach", "invokefunction"]
    assert bench.host.stopped_types == ["watch"]


def test_a_sent_trigger_removed_without_a_connection_is_unregistered_on_the_next() -> None:
    bench = Bench()
    known, unknown = trigger("known"), trigger("unknown")
    bench.session.add_trigger(known)
    bench.open()
    bench.session.closed("1006")
    bench.session.add_trigger(unknown)

    bench.session.remove_trigger(known)
    bench.session.remove_trigger(unknown)
    bench.session.remove_trigger(unknown)

    last = bench.open()[2:]
    assert last == [{"type": "unregistertrigger", "id": "known", "trigger_type": "http"}]


def test_removing_a_function_leaves_one_that_has_taken_its_place() -> None:
    bench = Bench()
    old, new = function("a::b"), function("a::b")
    bench.open()
    bench.session.add_function(old)
    bench.session.add_function(new)

    bench.session.remove_function(old)
    bench.session.remove_function(new)

    types = [frame["type"] for frame in bench.sent()]
    assert types == ["registerfunction", "registerfunction", "unregisterfunction"]


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


def test_a_result_is_never_sent_on_another_connection_than_its_invocation() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()
    bench.receive({"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"})
    bench.session.closed("1006")
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


def test_a_cancel_reaches_only_the_handler_it_names() -> None:
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

    given, connection = bench.host.started_triggers[0]
    bench.session.answer_trigger(given, None, connection)
    bench.session.answer_trigger(given, {"code": "c", "message": "m"}, connection)
    bench.session.answer_trigger(given, None, connection - 1)
    bench.receive({"type": "unregistertrigger", "id": "t9"})

    assert (given.config, given.metadata, given.function_id) == ({"dir": "in"}, 1, "f")
    result = {**message, "type": "triggerregistrationresult"}
    assert bench.sent() == [result, {**result, "error": {"code": "c", "message": "m"}}]
    assert bench.host.stopped_triggers == ["t9"]


def test_a_trigger_of_an_unknown_type_is_answered_with_an_error() -> None:
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
        '{"type":"invocationresult","invocation_id":"unknown"}',
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


def test_a_message_that_is_nested_too_deeply_ends_its_call() -> None:
    bench = Bench()
    bench.open()
    answer = bench.call()
    bench.sent()
    deep = "[" * 200_000 + "]" * 200_000

    ids = '"invocation_id":"c1","function_id":"a::b"'
    bench.session.received(f'{{"type":"invocationresult",{ids},"result":{deep}}}')
    bench.session.received(f'{{"type":"invokefunction",{ids},"data":{deep}}}')

    assert answer.code == "bad_message"
    assert bench.sent()[0]["error"]["code"] == "bad_message"


def test_a_host_that_fails_does_not_stop_a_session(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open()
    bench.host.invocations = None  # type: ignore[assignment]

    bench.receive({"type": "invokefunction", "invocation_id": "e1", "function_id": "a::b"})

    assert "Could not handle a message of type invokefunction" in caplog.text


def test_a_call_ends_with_its_result() -> None:
    bench = Bench()
    bench.open()
    answer = bench.call(payload='{"a":1}', metadata='"m"', namespace="eu", action=None)

    assert bench.sent() == [
        {
            "type": "invokefunction",
            "invocation_id": "c1",
            "function_id": "a::b",
            "namespace": "eu",
            "timeout_ms": 5000,
            "metadata": "m",
            "data": {"a": 1},
        }
    ]
    bench.receive({"type": "invocationprogress", "invocation_id": "c1", "data": 50})
    bench.receive(
        {"type": "invocationresult", "invocation_id": "c1", "function_id": "?", "result": 2}
    )
    bench.receive(
        {"type": "invocationresult", "invocation_id": "c1", "function_id": "?", "result": 3}
    )
    bench.receive({"type": "invocationprogress", "invocation_id": "c1", "data": 99})

    assert answer.ends == [(2, None)]
    assert answer.progress == [50]


@pytest.mark.parametrize(
    ("error", "body"),
    [
        ("boom", {"code": "UNKNOWN", "message": "boom"}),
        ({"code": "x", "message": "y"}, {"code": "x", "message": "y"}),
        ({"message": 5}, {"code": "UNKNOWN", "message": "5"}),
        ([1], {"code": "UNKNOWN", "message": "[1]"}),
    ],
)
def test_a_call_ends_with_its_error_however_it_is_written(error: object, body: object) -> None:
    bench = Bench()
    bench.open()
    answer = bench.call()
    bench.sent()

    bench.receive({"type": "invocationresult", "invocation_id": "c1", "error": error})

    assert answer.ends == [(None, body)]


def test_a_call_says_what_is_left_of_its_time_when_it_leaves() -> None:
    bench = Bench()
    bench.call(timeout_ms=5_000)
    bench.clock.now += 4_000

    assert bench.open()[-1]["timeout_ms"] == 1_000


def test_a_call_whose_time_is_over_is_never_sent() -> None:
    bench = Bench()
    answer = bench.call(timeout_ms=5_000)
    void = bench.call(timeout_ms=5_000, invocation_id=None)
    bench.clock.now += 5_000
    bench.session.expire()

    frames = bench.open()

    assert frames == [json.loads(ANNOUNCEMENT)]
    assert answer.ends == [
        (None, {"code": "TIMEOUT", "message": "invocation timed out after 5000ms"})
    ]
    assert void.ends == []


def test_an_unsent_call_times_out_at_its_deadline_a_sent_one_a_second_later() -> None:
    bench = Bench()
    bench.open()
    sent = bench.call(invocation_id="c1", timeout_ms=100)
    bench.sent()
    unsent = bench.call(invocation_id="c2", timeout_ms=100)

    bench.clock.now += 100
    bench.session.expire()
    assert (sent.code, unsent.code) == (None, "TIMEOUT")
    bench.clock.now += 999
    bench.session.expire()
    assert sent.code is None
    bench.clock.now += 1
    bench.session.expire()

    assert sent.code == "TIMEOUT"
    assert bench.host.deadlines[-1] == 2_100
    assert {"type": "cancelinvocation", "invocation_id": "c1", "reason": "timeout"} in bench.sent()


def test_a_sent_call_times_out_at_its_deadline_when_the_engine_has_no_deadlines() -> None:
    bench = Bench()
    bench.open(capabilities=[])
    answer = bench.call(timeout_ms=100)
    bench.sent()

    bench.clock.now += 100
    bench.session.expire()

    assert answer.code == "TIMEOUT"
    assert bench.sent() == []


def test_a_lost_connection_ends_the_calls_sent_on_it_and_keeps_the_others() -> None:
    bench = Bench()
    bench.open()
    sent = bench.call(invocation_id="c1")
    bench.sent()
    kept = bench.call(invocation_id="c2")

    bench.session.closed("1006")
    frames = bench.open()

    assert sent.code == "invocation_stopped"
    assert kept.ends == []
    assert [frame.get("invocation_id") for frame in frames] == [None, None, "c2"]
    assert bench.host.lost == 1


def test_a_connection_that_never_opened_changes_nothing_when_it_closes() -> None:
    bench = Bench()
    answer = bench.call()

    bench.session.closed("1006")

    assert answer.ends == []
    assert bench.host.lost == 0


def test_cancelling_ends_a_call_and_tells_the_engine_if_it_has_it() -> None:
    bench = Bench()
    bench.open()
    sent = bench.call(invocation_id="c1")
    bench.sent()
    unsent = bench.call(invocation_id="c2")

    for answer in (sent, unsent, sent):
        bench.session.cancel_call(answer.call, "user left")

    assert (sent.code, unsent.code, len(sent.ends)) == ("cancelled", "cancelled", 1)
    assert bench.sent() == [
        {"type": "cancelinvocation", "invocation_id": "c1", "reason": "user left"}
    ]


def test_a_call_that_is_cancelled_before_its_start_leaves_nothing_behind() -> None:
    bench = Bench()
    bench.open()
    bench.sent()
    answer = bench.call(invocation_id="c1", done=True)

    assert bench.session.is_quiet
    assert (answer.ends, bench.sent()) == ([], [])


def test_cancelling_says_nothing_to_an_engine_that_cannot() -> None:
    bench = Bench()
    bench.open(capabilities=["timeout"])
    answer = bench.call()
    bench.sent()

    bench.session.cancel_call(answer.call)

    assert answer.code == "cancelled"
    assert bench.sent() == []


def test_too_much_in_the_queue_ends_calls_as_overloaded_until_old_ones_are_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    large = '"' + "x" * (40 * 1024 * 1024) + '"'
    first = bench.call(invocation_id="c1", payload=large, timeout_ms=100)
    second = bench.call(invocation_id="c2", payload=large)
    void = bench.call(invocation_id=None, payload=large)
    void.call.settle, void.call.done = None, False
    bench.session.start_call(void.call)

    bench.clock.now += 100
    third = bench.call(invocation_id="c3", payload=large)

    assert second.ends[0][1]["retryable"] is True
    assert (first.code, second.code, third.code) == (None, "overloaded", None)
    assert "Dropped a call of a::b" in caplog.text


def test_ending_all_calls_leaves_other_frames_to_be_taken() -> None:
    bench = Bench()
    bench.open()
    answer = bench.call()
    bench.session.add_function(function("a::b"))

    bench.session.end_calls({"code": "SHUTDOWN", "message": "engine client is shutting down"})

    assert answer.code == "SHUTDOWN"
    assert [frame["type"] for frame in bench.sent()] == ["registerfunction"]


def test_calls_that_have_left_make_room_in_the_queue() -> None:
    bench = Bench()
    bench.open()
    large = '"' + "x" * (20 * 1024 * 1024) + '"'

    answers = []
    for number in range(10):
        answers.append(bench.call(invocation_id=f"c{number}", payload=large))
        assert bench.session.take() is not None

    assert [answer.code for answer in answers] == [None] * 10


def test_answered_calls_do_not_pile_up_until_their_deadline() -> None:
    bench = Bench()
    bench.open()

    for number in range(2_000):
        bench.call(invocation_id=f"c{number}")
        bench.sent()
        bench.receive({"type": "invocationresult", "invocation_id": f"c{number}"})

    assert len(bench.session._pending) == 0
    assert len(bench.session._pending._due) < 300
