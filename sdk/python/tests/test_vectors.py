"""The vectors in sdk/vectors, which both SDKs read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine_sdk._calls import Call
from engine_sdk._codec import (
    TriggerInstance,
    decode,
    encode,
    encode_error,
    frame,
    quote,
    read_invocation,
    read_trigger,
    result_frame,
    trigger_result_frame,
)
from engine_sdk._errors import ErrorBody
from engine_sdk._registrations import Function, Trigger, TriggerType, encode_if, quote_if
from fakes import Bench, function

VECTORS = Path(__file__).parents[3] / "sdk" / "vectors"
if not VECTORS.is_dir():
    pytest.skip("the vectors are not part of the package", allow_module_level=True)
ALL: list[dict[str, Any]] = [
    vector
    for path in sorted(VECTORS.glob("*_messages.json"))
    for vector in json.loads(path.read_text())
]
FROM_ENGINE = [vector for vector in ALL if vector["direction"] == "engine"]
CANONICAL = [
    vector for vector in ALL if vector["direction"] == "worker" and vector.get("canonical")
]


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["name"])


@pytest.mark.parametrize("vector", FROM_ENGINE, ids=name_of)
def test_a_frame_of_the_engine_is_read_or_ignored(vector: dict[str, Any]) -> None:
    bench = Bench()
    bench.session.add_function(function("math::add"))
    bench.open()

    bench.session.received(vector["frame"])

    if "message" in vector:
        read = decode(vector["frame"])
        assert {key: read[key] for key in vector["message"]} == vector["message"]
        ran = [invocation.function_id for invocation in bench.host.invocations]
        calls_known = vector["message"].get("function_id") == "math::add"
        is_call = vector["message"]["type"] == "invokefunction"
        assert ran == (["math::add"] if is_call and calls_known else [])


@pytest.mark.parametrize("vector", CANONICAL, ids=name_of)
def test_a_message_of_a_worker_is_written_as_its_frame(vector: dict[str, Any]) -> None:
    message, expected = dict(vector["message"]), str(vector["frame"])
    if message["type"] in ("ping", "pong", "registerservice"):
        pytest.skip("this SDK never sends it")
    if served := message.pop("invocation", None):  # This SDK serves its functions itself.
        expected = expected.replace(f',"invocation":{encode(served, "")}', "")

    assert write(message) == expected


def test_the_vectors_are_there() -> None:
    assert len(FROM_ENGINE) > 10
    assert len(CANONICAL) > 15


def write(message: dict[str, Any]) -> str:
    """Write a message the way the SDK does."""
    return WRITERS[message["type"]](message)


def text(message: dict[str, Any], key: str) -> str | None:
    return encode(message[key], key) if key in message else None


def write_function(m: dict[str, Any]) -> str:
    return Function(
        m["id"],
        lambda _: None,
        False,
        m.get("namespace"),
        m.get("description"),
        text(m, "request_format"),
        text(m, "response_format"),
        text(m, "metadata"),
    ).encode()


def write_trigger(m: dict[str, Any]) -> str:
    return Trigger(
        m["id"],
        m["trigger_type"],
        m["function_id"],
        text(m, "config"),
        text(m, "metadata"),
        m.get("namespace"),
        m.get("trigger_namespace"),
    ).encode()


def trigger_type(m: dict[str, Any]) -> TriggerType:
    return TriggerType(
        m["id"],
        m.get("description", ""),
        print,
        print,
        text(m, "trigger_request_format"),
        text(m, "call_request_format"),
        m.get("namespace"),
    )


def write_call(m: dict[str, Any]) -> str:
    call = Call(
        function_id=m["function_id"],
        timeout_ms=m.get("timeout_ms", 1),
        deadline=m.get("timeout_ms", 0),
        invocation_id=m.get("invocation_id"),
        payload=text(m, "data"),
        action=text(m, "action"),
        metadata=text(m, "metadata"),
        namespace=m.get("namespace"),
        traceparent=m.get("traceparent"),
        baggage=m.get("baggage"),
    )
    written = call.encode(0)
    if "timeout_ms" in m:
        return written
    return written.replace(',"timeout_ms":1', "")  # This SDK always says how long it waits.


def write_result(m: dict[str, Any]) -> str:
    error: ErrorBody | None = m.get("error")
    encoded = None if error is None else encode_error(error)
    return result_frame(read_invocation(m, 1, 0), text(m, "result"), encoded)


def write_trigger_result(m: dict[str, Any]) -> str:
    error: ErrorBody | None = m.get("error")
    encoded = None if error is None else encode_error(error)
    given: TriggerInstance = read_trigger(m)
    return trigger_result_frame(given, encoded)


def write_plain(m: dict[str, Any]) -> str:
    parts = {key: encode(value, key) for key, value in m.items() if key != "type"}
    return frame(m["type"], **parts)


def write_function_end(m: dict[str, Any]) -> str:
    return Function(
        m["id"], print, False, m.get("namespace"), None, None, None, None
    ).encode_unregister()


def write_trigger_end(m: dict[str, Any]) -> str:
    if "trigger_type" not in m:
        return frame("unregistertrigger", id=quote(m["id"]), trigger_type=quote_if(None))
    return Trigger(
        m["id"], m["trigger_type"], "", encode_if(None, ""), None, None, None
    ).encode_unregister()


WRITERS = {
    "registerfunction": write_function,
    "unregisterfunction": write_function_end,
    "registertriggertype": lambda m: trigger_type(m).encode(),
    "unregistertriggertype": lambda m: trigger_type(m).encode_unregister(),
    "registertrigger": write_trigger,
    "unregistertrigger": write_trigger_end,
    "triggerregistrationresult": write_trigger_result,
    "invokefunction": write_call,
    "invocationresult": write_result,
    "invocationprogress": write_plain,
    "cancelinvocation": write_plain,
    "reattach": write_plain,
}
