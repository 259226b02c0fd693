"""How a session makes calls and ends them."""

from __future__ import annotations

import json

import pytest

from fakes import ANNOUNCEMENT, Bench, function


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
    assert answer.news == [50]


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


def test_a_lost_line_ends_the_calls_it_carried_and_keeps_the_others() -> None:
    bench = Bench()
    bench.open()
    sent = bench.call(invocation_id="c1")
    bench.sent()
    kept = bench.call(invocation_id="c2")

    bench.session.closed()
    frames = bench.open()

    assert sent.code == "invocation_stopped"
    assert kept.ends == []
    assert [frame.get("invocation_id") for frame in frames] == [None, None, "c2"]
    assert bench.host.lost == 1


def test_a_line_that_never_opened_changes_nothing_when_it_closes() -> None:
    bench = Bench()
    answer = bench.call()

    bench.session.closed()

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
    void.call.settle = None
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

    assert len(bench.session._waiting) == 0
    assert len(bench.session._waiting._due) < 300
