"""
Telemetry as OTLP/JSON: log records, spans and gauges, and the frames that carry them.

A record is written when it is made, so that what waits is a text whose size is known; the
frame around it is written when it leaves.
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
"""Levels of nesting that are kept as they are; below, JSON text stands for a value."""


class Gauge(NamedTuple):
    """One measured value."""

    name: str
    unit: str
    value: float


class SpanRecord(NamedTuple):
    """The span of a handler; times are seconds since 1970."""

    ids: TraceIds
    """The call's own."""
    span_id: str
    name: str
    start: float
    end: float
    attributes: Mapping[str, Any]
    """What is None is left out."""
    error: str | None
    """Why it failed."""


def encode_log(level: Level, message: str, data: Any, at: float, ids: TraceIds | None) -> str:
    """
    Write a log record.

    Args:
        level: How urgent it is.
        message: The text; one that is too long is cut.
        data: Anything JSON can hold; None: nothing. The members of a dict become attributes.
        at: Seconds since 1970.
        ids: The call in which it was said.

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
    """Write the span of something that served a call."""
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
    """Write a gauge as it was at a time, in seconds since 1970."""
    points = [{"timeUnixNano": _nanos(at), "asDouble": gauge.value}]
    return _text({"name": gauge.name, "unit": gauge.unit, "gauge": {"dataPoints": points}})


def encode_frame(
    signal: Signal, groups: Iterable[tuple[Mapping[str, Any], Iterable[str]]]
) -> bytes:
    """
    Make a frame: four letters, then the records of each resource.

    Args:
        signal: What it carries.
        groups: Attributes of each resource, and what it says.

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


_FORM = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)


class TraceIds(NamedTuple):
    """What a ``traceparent`` says."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits: the span that what carries it belongs to."""
    is_sampled: bool
    """Whether the trace is recorded."""


def read_traceparent(text: str | None) -> TraceIds | None:
    """
    Read a ``traceparent``.

    Args:
        text: As it came; may be anything.

    Returns:
        Its ids; None when it is none.

    """
    found = _FORM.fullmatch(text) if text else None
    if found is None or (found[4] is not None and found[0].startswith("00-")):
        return None
    return TraceIds(found[1], found[2], bool(int(found[3], 16) & 1))


def looks_sampled(text: str) -> bool:
    """Tell whether a text says that its trace is recorded, if it is a ``traceparent``."""
    return text[54:55] in _SAMPLED


_SAMPLED = frozenset("13579bdf")
