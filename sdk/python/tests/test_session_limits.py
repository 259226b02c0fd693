"""What a session refuses, and what calls do without a connection."""

from __future__ import annotations

from typing import Any

from fakes import Bench, function


def test_calls_end_with_the_reason_of_the_lost_connection() -> None:
    bench = Bench()
    bench.open()
    answer = bench.call()
    bench.sent()

    bench.session.closed("1001 the engine is going down")

    assert answer.ends[0][1] == {
        "code": "invocation_stopped",
        "message": "Invocation stopped",
        "details": {"reason": "1001 the engine is going down"},
    }


def test_calls_fail_at_once_without_a_connection_when_they_must_not_wait() -> None:
    bench = Bench()
    first = bench.call()
    bench.session.refuse_waiting()
    second, void = bench.call(invocation_id="c2"), bench.call(invocation_id=None)

    codes = [answer.code for answer in (first, second, void)]
    assert codes == ["engine_unreachable"] * 3
    assert second.ends[0][1]["retryable"] is True
    bench.open()
    third = bench.call(invocation_id="c3")
    assert [frame.get("invocation_id") for frame in bench.sent()] == ["c3"]
    assert third.ends == []


def test_ten_thousand_calls_wait_for_a_connection_and_the_next_is_refused() -> None:
    bench = Bench()
    answers = [bench.call(invocation_id=f"c{number}") for number in range(10_001)]

    assert (answers[-1].code, answers[-2].ends) == ("overloaded", [])
    bench.clock.now += 6_000
    bench.session.expire()
    assert bench.call(invocation_id="later").ends == []
    bench.open()
    more = [bench.call(invocation_id=f"d{number}") for number in range(10_001)]
    assert more[-1].ends == []


def test_an_answer_over_64_mib_fails_its_call_alone() -> None:
    bench = Bench()
    bench.open()
    bench.session.add_function(function("a::b"))
    for number in ("1", "2"):
        bench.receive({"type": "invokefunction", "invocation_id": number, "function_id": "a::b"})
    bench.sent()
    first, second = bench.host.invocations

    bench.session.finish(first, f'"{"é" * (32 * 1024 * 1024)}"', None)
    bench.session.finish(second, "1", None)

    failed, done = bench.sent()
    assert failed["error"]["code"] == "serialization_error"
    assert "Result of a::b takes 67" in failed["error"]["message"]
    assert done["result"] == 1


def test_answers_are_refused_then_the_connection_closed_when_the_engine_does_not_read() -> None:
    bench = Bench()
    bench.open()
    bench.session.add_function(function("a::b"))
    for number in range(5):
        ids = {"invocation_id": str(number), "function_id": "a::b"}
        bench.receive({"type": "invokefunction", **ids})
    bench.sent()
    first, second, third, *_ = bench.host.invocations
    large = f'"{"x" * (63 * 1024 * 1024)}"'

    bench.session.finish(first, large, None)
    bench.session.finish(second, large, None)
    bench.session.finish(third, large, None)

    answers = bench.sent()
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, "overloaded"]
    assert "retryable" not in answers[2]["error"]
    assert bench.host.stalls == 0


def test_an_error_while_a_message_is_handled_ends_its_call() -> None:
    bench = Bench()
    bench.open()
    answer = bench.call()
    bench.sent()

    def broken(message: dict[str, Any]) -> None:
        raise RuntimeError("a bug")

    bench.session._handle["invocationresult"] = broken

    bench.session.received('{"type":"invocationresult","invocation_id":"c1","function_id":"a::b"}')

    assert answer.code == "bad_message"
