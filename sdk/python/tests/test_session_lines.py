"""What a session says on a new line, and what it keeps of the old one."""

from __future__ import annotations

import json

from fakes import ANNOUNCEMENT, Bench, function, trigger, trigger_type


def test_first_line_says_who_then_types_then_functions_then_triggers_then_calls() -> None:
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


def test_every_later_line_begins_with_reattach_to_the_one_before() -> None:
    bench = Bench()
    bench.session.add_function(function("a::b"))
    bench.open(worker_id="w1", reattach_token="t1")

    bench.session.closed()
    second = bench.open(worker_id="w2", reattach_token="t2")
    bench.session.closed()
    third = bench.open()

    expected = {"type": "reattach", "previous_worker_id": "w1", "reattach_token": "t1"}
    assert second[0] == expected
    assert third[0] == {**expected, "previous_worker_id": "w2", "reattach_token": "t2"}
    assert [frame["type"] for frame in second[1:]] == ["invokefunction", "registerfunction"]


def test_registrations_made_without_a_line_go_out_once() -> None:
    bench = Bench()
    bench.open()
    bench.session.closed()

    bench.session.add_function(function("a::b"))
    frames = bench.open()

    assert sum(frame["type"] == "registerfunction" for frame in frames) == 1
    assert bench.sent() == []


def test_what_was_taken_back_without_a_line_is_not_said_again() -> None:
    bench = Bench()
    offer, type_ = function("a::b"), trigger_type()
    bench.session.add_function(offer)
    bench.session.add_type(type_)
    bench.open()
    bench.session.closed()

    bench.session.remove_function(offer)
    bench.session.remove_type(type_)

    assert [frame["type"] for frame in bench.open()] == ["reattach", "invokefunction"]
    assert bench.host.withdrawn_types == ["watch"]


def test_a_trigger_ended_without_a_line_is_ended_on_the_next_if_it_was_ever_sent() -> None:
    bench = Bench()
    known, unknown = trigger("known"), trigger("unknown")
    bench.session.add_trigger(known)
    bench.open()
    bench.session.closed()
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
