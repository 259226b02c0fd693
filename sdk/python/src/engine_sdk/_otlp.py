"""
Telemetry as OTLP/JSON (PROTOCOL 9): log records, spans, gauges, and the frames that carry them.

Records are encoded when they occur, so that queues hold strings of known size; the frame around
them is encoded when it is sent. Also here: reading W3C ``traceparent`` values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from ._codec import __version__

TELEMETRY_VALUE_CHARS_MAX: Final = 32 * 1024
"""Longest text in telemetry; the rest is cut off."""


Level = Literal["trace", "debug", "info", "warn", "error"]
Signal = Literal["LOGS", "OTLP", "MTRC"]

_SEVERITIES: dict[Level, int] = {"trace": 1, "debug": 5, "info": 9, "warn": 13, "error": 17}
_WRAPPINGS: dict[Signal, tuple[str, str, str]] = {
    "LOGS": ("resourceLogs", "scopeLogs", "logRecords"),
    "OTLP": ("resourceSpans", "scopeSpans", "spans"),
    "MTRC": ("resourceMetrics", "scopeMetrics", "metrics"),
}
_SAFE_INTEGER = 2**63
_DEPTH_MAX = 8
"""Levels of nesting that are kept; deeper values become JSON text."""

_FORM = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_SAMPLED = frozenset("13579bdf")


class Gauge(NamedTuple):
    """One measured value."""

    name: str
    unit: str
    value: float
    function_id: str | None = None
    """The function that it is about, if it is about one."""


class SpanRecord(NamedTuple):
    """The span of a handler; times are seconds since 1970."""

    ids: TraceIds
    """Trace context of the call; its span is the parent."""
    span_id: str
    name: str
    start: float
    end: float
    attributes: Mapping[str, Any]
    """Attributes; those with value None are left out."""
    error: str | None
    """Message of the error that ended it; None: it succeeded."""


def encode_log(level: Level, message: str, data: Any, at: float, ids: TraceIds | None) -> str:
    """
    Encode a log record.

    Args:
        level: Severity.
        message: The text; cut at `TELEMETRY_VALUE_CHARS_MAX`.
        data: Any JSON value; None: none. The items of a dict become attributes.
        at: Seconds since 1970.
        ids: Trace context of the call that logs it.

    """
    record: dict[str, Any] = {
        "timeUnixNano": _nanos(at),
        "observedTimeUnixNano": _nanos(at),
        "severityNumber": _SEVERITIES[level],
        "severityText": level.upper(),
        "body": {"stringValue": _cut(message)},
    }
    if data is not None:
        record["attributes"] = _attributes(data if isinstance(data, dict) else {"data": data})
    if ids is not None:
        record.update(traceId=ids.trace_id, spanId=ids.span_id, flags=int(ids.is_sampled))
    return _text(record)


def encode_span(span: SpanRecord) -> str:
    """Encode the server span of a handler."""
    status = {"code": 1} if span.error is None else {"code": 2, "message": _cut(span.error)}
    return _text(
        {
            "traceId": span.ids.trace_id,
            "spanId": span.span_id,
            "parentSpanId": span.ids.span_id,
            "name": span.name,
            "kind": 2,
            "startTimeUnixNano": _nanos(span.start),
            "endTimeUnixNano": _nanos(span.end),
            "attributes": _attributes(span.attributes),
            "status": status,
        }
    )


def encode_gauge(gauge: Gauge, at: float) -> str:
    """Encode a gauge measured at a time, in seconds since 1970."""
    point: dict[str, Any] = {"timeUnixNano": _nanos(at), "asDouble": gauge.value}
    if gauge.function_id is not None:
        point["attributes"] = _attributes({"engine.function.id": gauge.function_id})
    points = [point]
    return _text({"name": gauge.name, "unit": gauge.unit, "gauge": {"dataPoints": points}})


def encode_frame(
    signal: Signal, groups: Iterable[tuple[Mapping[str, Any], Iterable[str]]]
) -> bytes:
    """
    Encode a frame: the signal's four letters, then the records of each resource.

    Args:
        signal: Which records it carries.
        groups: Attributes of each resource, and its encoded records.

    """
    outer, inner, name = _WRAPPINGS[signal]
    scope = _text({"name": "engine-sdk", "version": __version__})
    parts = [
        f'{{"resource":{_text({"attributes": _attributes(resource)})},'
        f'"{inner}":[{{"scope":{scope},"{name}":[{",".join(records)}]}}]}}'
        for resource, records in groups
    ]
    return f'{signal}{{"{outer}":[{",".join(parts)}]}}'.encode()


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": _cut(str(key)), "value": _value(value, 1)}
        for key, value in values.items()
        if value is not None or key == "data"
    ]


def _value(value: Any, depth: int) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, str):
        return {"stringValue": _cut(value)}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -_SAFE_INTEGER <= value < _SAFE_INTEGER:
        return {"intValue": str(value)}
    if isinstance(value, (int, float)):
        return {"doubleValue": float(value)}
    if depth >= _DEPTH_MAX:
        return {"stringValue": _cut(_text(value))}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item, depth + 1) for item in value]}}
    members = [{"key": str(key), "value": _value(item, depth + 1)} for key, item in value.items()]
    return {"kvlistValue": {"values": members}}


def _cut(text: str) -> str:
    if len(text) <= TELEMETRY_VALUE_CHARS_MAX:
        return text
    return text[:TELEMETRY_VALUE_CHARS_MAX] + "…"


def _nanos(seconds: float) -> str:
    # A double cannot hold nanoseconds since 1970.
    return f"{round(seconds * 1e6)}000"


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class TraceIds(NamedTuple):
    """The fields of a ``traceparent``."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits: the parent span."""
    is_sampled: bool
    """Whether the trace is recorded."""


def read_traceparent(text: str | None) -> TraceIds | None:
    """
    Parse a ``traceparent``.

    Args:
        text: As received; may be anything.

    Returns:
        Its fields; None when it is absent or malformed.

    """
    found = _FORM.fullmatch(text) if text else None
    if found is None or (found[4] is not None and found[0].startswith("00-")):
        return None
    return TraceIds(found[1], found[2], bool(int(found[3], 16) & 1))


def looks_sampled(text: str) -> bool:
    """Check the sampled flag only, without validating the ``traceparent``."""
    return text[54:55] in _SAMPLED
