"""What a session refuses, and what calls do without a connection."""

from __future__ import annotations

from typing import Any

import pytest

from engine_sdk import _session
from engine_sdk._codec import Invocation
from engine_sdk._session import STALLED_MS
from fakes import Bench, function


def test_calls_end_with_the_reason_of_the_lost_connection() -> None:
    bench = Bench()
    bench.open()
    answer = bench.call()
    bench.sent()

    bench.session.closed("1001 the engine is stopping")

    assert answer.ends[0][1] == {
        "code": "invocation_stopped",
        "message": "Invocation stopped",
        "details": {"reason": "1001 the engine is stopping"},
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


def asked(bench: Bench, count: int) -> list[Invocation]:
    bench.open()
    bench.session.add_function(function("a::b"))
    for number in range(count):
        ids = {"invocation_id": str(number), "function_id": "a::b"}
        bench.receive({"type": "invokefunction", **ids})
    bench.sent()
    return bench.host.invocations


def codes(bench: Bench) -> list[str | None]:
    return [answer.get("error", {}).get("code") for answer in bench.sent()]


def test_answers_of_any_number_wait_while_the_engine_reads() -> None:
    bench = Bench()
    large = f'"{"x" * (45 * 1024 * 1024)}"'
    invocations = asked(bench, 8)

    for invocation in invocations[:4]:
        bench.session.finish(invocation, large, None)
    for invocation in invocations[4:]:
        bench.clock.now += STALLED_MS - 1
        assert bench.session.take() is not None
        bench.session.finish(invocation, large, None)

    assert codes(bench) == [None] * 4
    assert bench.host.stalls == 0


def test_answers_are_refused_when_the_engine_does_not_read() -> None:
    bench = Bench()
    large = f'"{"x" * (63 * 1024 * 1024)}"'
    invocations = asked(bench, 3)
    for invocation in invocations[:2]:
        bench.session.finish(invocation, large, None)
    bench.clock.now += STALLED_MS

    bench.session.finish(invocations[2], large, None)

    assert bench.host.stalls == 0
    answers = bench.sent()
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, "overloaded"]
    assert "retryable" not in answers[2]["error"]


def test_a_connection_whose_engine_has_long_read_nothing_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_session, "QUEUED_BYTES_MAX", 1_000)
    monkeypatch.setattr(_session, "UNSENT_BYTES_END", 3_000)
    bench = Bench()
    invocations = asked(bench, 5)
    for invocation in invocations[:4]:
        bench.session.finish(invocation, f'"{"x" * 900}"', None)
    assert bench.host.stalls == 0

    bench.clock.now += STALLED_MS
    bench.session.finish(invocations[4], "1", None)

    assert bench.host.stalls == 1


def test_answers_beyond_512_mib_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_session, "RESULT_BYTES_MAX", 2_000)
    bench = Bench()
    for invocation in asked(bench, 4):
        bench.session.finish(invocation, f'"{"x" * 900}"', None)

    assert codes(bench) == [None, None, None, "overloaded"]


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
