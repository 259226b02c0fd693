"""The checks of requests and options, and the errors for invalid ones."""

from __future__ import annotations

import json
import math
import threading
import uuid
from typing import Any

import pytest

from engine_sdk import EngineError, InitOptions, InvocationError, TriggerAction
from engine_sdk._calls import CallIds, plan_call
from engine_sdk._codec import read_invocation
from engine_sdk._context import CallContext
from engine_sdk._registrations import plan_trigger, plan_trigger_type
from engine_sdk._transport import read_url, redacted_url
from fakes import FakeClock

ID: dict[str, Any] = {"function_id": "a::b"}


def plan(request: Any, context: CallContext | None = None) -> Any:
    return plan_call(request, 30_000, context, 1_000, CallIds())


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (None, "request must be a dict, not NoneType"),
        ("a::b", "request must be a dict, not str"),
        ({}, "request lacks function_id"),
        ({**ID, "payloads": 1, "id": 2}, "request has no id, payloads; it knows action"),
        ({"function_id": 5}, "function_id must be a string, such as 'math::add', not int"),
        ({"function_id": ""}, "function_id must have 1 to 1024 characters"),
        ({"function_id": "x" * 1025}, "function_id must have 1 to 1024 characters"),
        ({**ID, "timeout_ms": 0}, "timeout_ms must be above 0 and at most 604800000, got 0"),
        ({**ID, "timeout_ms": -5}, "timeout_ms must be above 0"),
        ({**ID, "timeout_ms": math.nan}, "timeout_ms must be above 0"),
        ({**ID, "timeout_ms": 1e12}, "timeout_ms must be above 0"),
        ({**ID, "timeout_ms": "5"}, "timeout_ms must be a number, not str"),
        ({**ID, "timeout_ms": True}, "timeout_ms must be a number, not bool"),
        ({**ID, "namespace": ""}, "namespace must be a string, got ''"),
        ({**ID, "namespace": 7}, "namespace must be a string, got 7"),
        ({**ID, "action": "void"}, "action must be TriggerAction.Void"),
        ({**ID, "action": {"type": "enqueue"}}, "action must be TriggerAction.Void"),
        ({**ID, "action": {"type": "later"}}, "action must be TriggerAction.Void"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(request_: Any, words: str) -> None:
    with pytest.raises(EngineError) as raised:
        plan(request_)

    assert raised.value.code == "INVALID_ARGUMENTS"
    assert words in raised.value.message


@pytest.mark.parametrize("key", ["payload", "metadata"])
def test_a_call_with_what_json_cannot_hold_is_refused(key: str) -> None:
    with pytest.raises(EngineError, match=f"{key.title()} of a::b cannot be sent"):
        plan({**ID, key: math.nan})


def test_a_call_knows_whether_it_has_a_payload() -> None:
    assert plan(ID).payload is None
    assert plan({**ID, "payload": None}).payload == "null"


def test_an_enqueue_has_only_options_that_there_are() -> None:
    action = {"type": "enqueue", "queue": "mails", "delay": 5}

    message = "'delay' is not an option of an enqueued call; the options are id, delay_ms"
    with pytest.raises(EngineError, match=message) as caught:
        plan({**ID, "action": action})

    assert caught.value.code == "INVALID_ARGUMENTS"


def test_a_void_call_has_no_id_and_an_enqueue_has_one() -> None:
    void = plan({**ID, "action": TriggerAction.Void()})
    enqueue = plan({**ID, "action": TriggerAction.Enqueue("mails")})
    delayed = plan({**ID, "action": TriggerAction.Enqueue("mails", delay_ms=5, id="a")})
    assert delayed.action is not None
    assert json.loads(delayed.action) == {
        "type": "enqueue",
        "queue": "mails",
        "delay_ms": 5,
        "id": "a",
    }

    assert (void.invocation_id, void.action) == (None, '{"type": "void"}')
    assert enqueue.invocation_id
    assert enqueue.action == '{"type": "enqueue", "queue": "mails"}'


def context_with(timeout_ms: float | None) -> CallContext:
    message = {"function_id": "f", "timeout_ms": timeout_ms, "traceparent": "00-a-b-01"}
    clock = FakeClock()
    return CallContext(read_invocation(message, 1, clock()), clock, lambda *_: None)


def test_a_call_in_a_handler_takes_over_its_deadline_and_its_trace() -> None:
    assert plan(ID, context_with(500)).timeout_ms == 500
    assert plan({**ID, "timeout_ms": 100}, context_with(500)).timeout_ms == 100
    assert plan(ID, context_with(None)).timeout_ms == 30_000
    assert plan(ID, context_with(500)).traceparent == "00-a-b-01"


def test_a_call_in_a_handler_without_time_fails_but_a_void_call_leaves() -> None:
    context = context_with(0.25)

    with pytest.raises(InvocationError, match="TIMEOUT: invocation timed out after 0ms"):
        plan(ID, context)
    assert plan({**ID, "action": TriggerAction.Void()}, context).timeout_ms == 30_000


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"type": "http"}, "trigger lacks function_id"),
        ({"type": "", "function_id": "f"}, "type of a trigger must have"),
        ({"type": "http", "function_id": "f", "path": "/"}, "trigger has no path"),
        ({"type": "http", "function_id": "f", "trigger_namespace": ""}, "namespace must be"),
        ({"type": "http", "function_id": "f", "config": {1, 2}}, "config of the http trigger"),
    ],
)
def test_a_trigger_that_makes_no_sense_is_refused(given: Any, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        plan_trigger(given, "t1")


class Handler:
    def register_trigger(self, trigger: Any) -> None: ...

    def unregister_trigger(self, trigger: Any) -> None: ...


def test_a_trigger_type_takes_an_object_or_two_callables() -> None:
    given: Any = {"id": "watch", "description": "Watches"}
    handler = Handler()

    assert plan_trigger_type(given, handler, None).start == handler.register_trigger
    assert plan_trigger_type(given, print, repr).stop is repr
    for bad in (print, object(), None):
        with pytest.raises(EngineError, match="needs two callables, or an object"):
            plan_trigger_type(given, bad, None)
    with pytest.raises(EngineError, match="trigger type lacks description"):
        plan_trigger_type({"id": "watch"}, handler, None)  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout_ms": 0}, "timeout_ms must be above 0"),
        ({"max_threads": 0}, "max_threads must be at least 1"),
        ({"token": "a\r\nb"}, "token must be one line"),
        ({"headers": {"x": "a\nb"}}, "Header 'x' must be one line"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        InitOptions(**options)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ws://h:1", "ws://h:1"),
        ("http://h:1/x?token=a", "ws://h:1/x?token=a"),
        ("HTTPS://h", "wss://h"),
        ("127.0.0.1:49134", "ws://127.0.0.1:49134"),
        ("ws://[::1]:9", "ws://[::1]:9"),
    ],
)
def test_an_address_is_made_one_of_a_web_socket(url: str, expected: str) -> None:
    assert read_url(url) == expected


@pytest.mark.parametrize("url", ["ftp://h", "ws://", "ws://h:port", "ws://h:99999", "ws://[::1"])
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(EngineError, match="is not an address of an engine"):
        read_url(url)


def test_an_address_is_shown_without_its_secrets() -> None:
    assert redacted_url("wss://user:pw@h:1/x?token=secret") == "wss://h:1/x"


def test_ids_of_calls_are_uuids_that_never_come_twice() -> None:
    ids, other = CallIds(), CallIds()
    made: list[str] = []

    def make() -> None:
        made.extend([ids.make() for _ in range(2_000)])

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(made)) == 8_000
    assert all(str(uuid.UUID(id_)) == id_ for id_ in made)
    assert made[0][:24] != other.make()[:24]
