"""Telemetry as OTLP/JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine_sdk._otlp import (
    TELEMETRY_VALUE_CHARS_MAX,
    Gauge,
    Level,
    SpanRecord,
    TraceIds,
    encode_frame,
    encode_gauge,
    encode_log,
    encode_span,
    looks_sampled,
    read_traceparent,
)

AT = 1_767_225_600.00025
NANOS = "1767225600000250000"
IDS = TraceIds("a" * 32, "b" * 16, True)


def log(message: str = "", data: Any = None, level: Level = "info") -> dict[str, Any]:
    record: dict[str, Any] = json.loads(encode_log(level, message, data, AT, None))
    return record


def test_a_log_record_has_time_level_text_and_call() -> None:
    assert json.loads(encode_log("warn", "late", None, AT, IDS)) == {
        "timeUnixNano": NANOS,
        "observedTimeUnixNano": NANOS,
        "severityNumber": 13,
        "severityText": "WARN",
        "body": {"stringValue": "late"},
        "traceId": IDS.trace_id,
        "spanId": IDS.span_id,
        "flags": 1,
    }


@pytest.mark.parametrize(("level", "number"), [("trace", 1), ("debug", 5), ("info", 9)])
def test_each_level_has_its_number(level: Level, number: int) -> None:
    record = log(level=level)

    assert (record["severityNumber"], record["severityText"]) == (number, level.upper())


@pytest.mark.parametrize(
    ("data", "attributes"),
    [
        (
            {"order": 7, "sum": 1.5, "paid": True},
            {"order": {"intValue": "7"}, "sum": {"doubleValue": 1.5}, "paid": {"boolValue": True}},
        ),
        ("x", {"data": {"stringValue": "x"}}),
        ([1, None], {"data": {"arrayValue": {"values": [{"intValue": "1"}, {}]}}}),
        (2**70, {"data": {"doubleValue": float(2**70)}}),
        ({"data": None}, {"data": {}}),
        (
            {"a": {"b": "c"}},
            {"a": {"kvlistValue": {"values": [{"key": "b", "value": {"stringValue": "c"}}]}}},
        ),
    ],
)
def test_data_become_attributes(data: Any, attributes: dict[str, Any]) -> None:
    assert {item["key"]: item["value"] for item in log(data=data)["attributes"]} == attributes


def test_what_is_nested_too_deep_becomes_text() -> None:
    data: Any = {"end": 1}
    for _ in range(50):
        data = {"in": data}

    assert '{"stringValue": "{\\"in\\":' in json.dumps(log(data=data))


def test_texts_that_are_too_long_are_cut() -> None:
    long = "x" * (TELEMETRY_VALUE_CHARS_MAX + 1)

    record = log(long, {"long": long})

    assert record["body"]["stringValue"] == long[1:] + "…"
    assert record["attributes"][0]["value"]["stringValue"] == long[1:] + "…"


def test_half_of_a_surrogate_pair_can_be_sent() -> None:
    frame = encode_frame("LOGS", [({}, [encode_log("info", "\ud83d", None, AT, None)])])

    assert b"\\ud83d" in frame


@pytest.mark.parametrize(
    ("error", "status"), [(None, {"code": 1}), ("sold out", {"code": 2, "message": "sold out"})]
)
def test_a_span_of_kind_server_stands_below_the_engines(
    error: str | None, status: dict[str, Any]
) -> None:
    attributes = {"engine.function.id": "a::b", "engine.error_code": None}
    span = SpanRecord(IDS, "c" * 16, "execute a::b", AT, AT + 0.002, attributes, error)

    assert json.loads(encode_span(span)) == {
        "traceId": IDS.trace_id,
        "spanId": "c" * 16,
        "parentSpanId": IDS.span_id,
        "name": "execute a::b",
        "kind": 2,
        "startTimeUnixNano": NANOS,
        "endTimeUnixNano": "1767225600002250000",
        "attributes": [{"key": "engine.function.id", "value": {"stringValue": "a::b"}}],
        "status": status,
    }


def test_a_frame_has_four_letters_before_the_records_of_each_resource() -> None:
    gauge = encode_gauge(Gauge("m", "By", 5), AT)
    resource = {"service.name": "größe", "service.instance.id": None}

    frame = encode_frame("MTRC", [(resource, [gauge])])

    assert frame[:4] == b"MTRC"
    points = [{"timeUnixNano": NANOS, "asDouble": 5}]
    assert json.loads(frame[4:]) == {
        "resourceMetrics": [
            {
                "resource": {
                    "attributes": [{"key": "service.name", "value": {"stringValue": "größe"}}]
                },
                "scopeMetrics": [
                    {
                        "scope": {"name": "engine-sdk", "version": "0.1.0"},
                        "metrics": [{"name": "m", "unit": "By", "gauge": {"dataPoints": points}}],
                    }
                ],
            }
        ]
    }


TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("flags", "sampled"), [("00", False), ("01", True), ("02", False), ("ff", True)]
)
def test_ids_and_the_decision_are_read(flags: str, sampled: bool) -> None:
    text = f"00-{TRACE}-{SPAN}-{flags}"

    assert read_traceparent(text) == (TRACE, SPAN, sampled)
    assert looks_sampled(text) == sampled


def test_a_later_version_may_have_more_behind() -> None:
    read = read_traceparent(f"01-{TRACE}-{SPAN}-01-more")

    assert read is not None
    assert read.span_id == SPAN


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"01-{TRACE}-{SPAN}-011",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
    ],
)
def test_whatever_has_another_form_counts_as_absent(text: str | None) -> None:
    assert read_traceparent(text) is None


@pytest.mark.parametrize("text", ["", "1", f"00-{TRACE}-{SPAN}-0"])
def test_a_text_that_is_too_short_looks_like_one_that_is_not(text: str) -> None:
    assert not looks_sampled(text)
