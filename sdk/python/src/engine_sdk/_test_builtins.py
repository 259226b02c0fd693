"""
The built-in parts of a test engine: state, topics, schedules, queues and HTTP routes.

They follow PROTOCOL 4 to 6 as far as tests need it; docs/how-to/testing.md of the engine lists
the rest.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from ._errors import EngineError, ErrorBody
from ._test_routing import Routing, TriggerType, json_copy


def _of_payload(run: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda payload, _metadata: run(payload)


class State:
    """``state::*`` in memory, with versions, expiry and triggers."""

    def __init__(self, routing: Routing) -> None:
        self._routing = routing
        self._entries: dict[str, dict[str, dict[str, Any]]] = {}
        self._version = 0
        routing.types["state"] = TriggerType()
        for name in ("get", "entry", "set", "delete", "update", "list", "list_entries"):
            run: Callable[[Any], Any] = getattr(self, f"_{name}")
            routing.builtins[f"state::{name}"] = _of_payload(run)
        routing.builtins["state::list_groups"] = lambda _payload, _metadata: {
            "groups": sorted(scope for scope in self._entries if self._live(scope))
        }

    def _live(self, scope: str) -> dict[str, dict[str, Any]]:
        now = self._routing.wall_ms()
        entries = self._entries.get(scope, {})
        return {k: e for k, e in entries.items() if e.get("expires_at_ms", now + 1) > now}

    def _entry(self, place: Any) -> Any:
        if not isinstance(place, dict) or not place.get("scope") or not place.get("key"):
            raise EngineError("deserialization_error", "state::*: scope and key must be strings")
        return self._live(place["scope"]).get(place["key"])

    def _get(self, place: Any) -> Any:
        entry = self._entry(place)
        return None if entry is None else entry["value"]

    def _set(self, payload: Any) -> Any:
        before = self._checked(payload)
        value = payload.get("value", payload.get("data"))
        return self._write(payload, before, value, payload.get("ttl_ms"))

    def _checked(self, payload: Any) -> Any:
        before = self._entry(payload)
        current = 0 if before is None else before["version"]
        if payload.get("expected_version") in (None, current):
            return before
        message = f"The version of {payload['key']} is {current}"
        raise EngineError("version_mismatch", message, {"current_version": current})

    def _write(self, place: Any, before: Any, value: Any, ttl_ms: float | None) -> Any:
        scope, key = place["scope"], place["key"]
        self._version += 1
        entry = {"value": value, "version": self._version}
        entry["updated_at_ms"] = self._routing.wall_ms()
        if ttl_ms is not None:
            entry["expires_at_ms"] = self._routing.wall_ms() + ttl_ms
            self._routing.after(ttl_ms, lambda: self._expire(scope, key, entry))
        self._entries.setdefault(scope, {})[key] = entry
        old = None if before is None else before["value"]
        self._fire("created" if before is None else "updated", scope, key, old, value)
        return {"old_value": old, "new_value": value}

    def _delete(self, payload: Any) -> Any:
        before = self._checked(payload)
        if before is None:
            return None
        self._expire(payload["scope"], payload["key"], before)
        return before["value"]

    def _expire(self, scope: str, key: str, entry: Any) -> None:
        value = entry["value"]
        if self._entries.get(scope, {}).get(key) is entry:
            del self._entries[scope][key]
            self._fire("deleted", scope, key, value, None)

    def _update(self, payload: Any) -> Any:
        before = self._entry(payload)
        value = json_copy({} if before is None else before["value"])
        errors = []
        for index, op in enumerate(payload.get("ops", [])):
            try:
                value = _apply(value, op)
            except EngineError as error:
                errors.append({"op_index": index, "code": error.code, "message": error.message})
        changed = self._write(payload, before, value, None)
        if before is not None and "expires_at_ms" in before:
            self._entries[payload["scope"]][payload["key"]]["expires_at_ms"] = before[
                "expires_at_ms"
            ]
        return {**changed, **({"errors": errors} if errors else {})}

    def _list(self, payload: Any) -> Any:
        return [entry["value"] for entry in self._live(payload["scope"]).values()]

    def _list_entries(self, payload: Any) -> Any:
        live = sorted(self._live(payload["scope"]).items())
        prefix = payload.get("prefix", "")
        return {
            "entries": [
                {"key": key, "value": entry["value"], "version": entry["version"]}
                for key, entry in live
                if key.startswith(prefix)
            ]
        }

    def _fire(self, what: str, scope: str, key: str, old: Any, new: Any) -> None:
        event = {"type": "state", "event_type": f"state:{what}", "scope": scope, "key": key}
        for trigger in self._routing.triggers_of("state"):
            config = trigger.get("config") or {}
            if config.get("scope", scope) == scope and config.get("key", key) == key:
                self._routing.fire(trigger, {**event, "old_value": old, "new_value": new})


def _apply(root: Any, op: Mapping[str, Any]) -> Any:
    """Apply one operation of an update; the codes are those of PROTOCOL 5.1."""
    kind, path, value = op["type"], op.get("path", ""), op.get("value")
    parts = [*path] if isinstance(path, list) else [path] if path else []
    if not parts:
        if kind in ("set", "remove"):
            return value if kind == "set" else None
        return _combine(kind, root, op, is_nested=False)
    if not isinstance(root, dict):
        name = "increment" if kind == "decrement" else kind
        raise EngineError(f"{name}.target_not_object", "the target is not an object")
    first, rest = parts[0], parts[1:]
    if kind == "remove":
        return {key: each for key, each in root.items() if key != first}
    if rest:
        return {**root, first: _apply(root.get(first) or {}, {**op, "path": rest})}
    nested = isinstance(path, list)
    now = root.get(first)
    return {**root, first: value if kind == "set" else _combine(kind, now, op, is_nested=nested)}


def _combine(kind: str, now: Any, op: Mapping[str, Any], *, is_nested: bool) -> Any:
    value = op.get("value")
    if kind in ("increment", "decrement"):
        change = op["by"] if kind == "increment" else -op["by"]
        if now is not None and not isinstance(now, (int, float)):
            raise EngineError(f"{kind}.not_number", "the value is not a number")
        return (now or 0) + change
    if kind == "append":
        if now is None:
            return value if isinstance(value, str) and not is_nested else [value]
        if isinstance(now, list):
            return [*now, value]
        if isinstance(now, str) and isinstance(value, str):
            return now + value
        raise EngineError("append.type_mismatch", "the value is not a list")
    if kind == "merge" and isinstance(value, dict):
        return {**(now or {}), **value}
    raise EngineError("merge.value.not_an_object", "the value is not an object")


def add_topics(routing: Routing) -> None:
    """Add ``publish`` and the trigger type ``subscribe``."""

    def topic_of(config: Any) -> str:
        topic = config.get("topic") if isinstance(config, dict) else None
        if not isinstance(topic, str) or not topic:
            raise EngineError("topic_not_set", "topic must be a string")
        return topic

    def publish(payload: Any, _metadata: Any) -> None:
        topic = topic_of(payload)
        for trigger in routing.triggers_of("subscribe"):
            if _matches(topic_of(trigger.get("config")), topic):
                routing.fire(trigger, payload.get("data"))

    routing.builtins["publish"] = publish
    routing.types["subscribe"] = TriggerType(lambda trigger: void(topic_of(trigger.get("config"))))


def void(_value: object) -> None:
    """Ignore a value."""


def _matches(pattern: str, topic: str) -> bool:
    wanted, parts = pattern.split("."), topic.split(".")
    if wanted[-1] == ">":
        if len(parts) < len(wanted):
            return False
    elif len(parts) != len(wanted):
        return False
    return all(part in ("*", ">") or part == own for part, own in zip(wanted, parts, strict=False))


def add_schedules(routing: Routing) -> None:
    """Add the trigger type ``cron``: functions are called as the test lets time pass."""
    stops: dict[str, Callable[[], None]] = {}

    def added(trigger: dict[str, Any]) -> None:
        config = trigger.get("config") or {}
        if not config.get("expression"):
            raise ValueError("Cron expression is required")
        if config.get("timezone", "UTC") != "UTC":
            raise ValueError("A test engine has the time zone UTC only")
        schedule = Schedule(config["expression"])

        def wait() -> None:
            at = schedule.next(routing.wall_ms())
            if at is not None:
                stops[trigger["id"]] = routing.after(at - routing.wall_ms(), lambda: fire(at))

        def fire(at: float) -> None:
            wait()
            times = {"scheduled_time": _text(at), "actual_time": _text(routing.wall_ms())}
            routing.fire(trigger, {"trigger": "cron", "job_id": trigger["id"], **times})

        wait()

    routing.types["cron"] = TriggerType(added, lambda id_: stops.pop(id_, lambda: None)())


def _text(ms: float) -> str:
    text = datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
    return text.replace(".000", "")


_MONTHS: Final = [
    "JAN",
    "FEB",
    "MAR",
    "APR",
    "MAY",
    "JUN",
    "JUL",
    "AUG",
    "SEP",
    "OCT",
    "NOV",
    "DEC",
]
_DAYS: Final = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_DAYS_MAX: Final = 366 * 8 + 2
"""A leap day is eight years away at most."""


class Schedule:
    """A cron expression with seconds, in UTC."""

    def __init__(self, expression: str) -> None:
        fields = expression.split()
        if len(fields) not in (6, 7):
            raise ValueError(f"Cron expression {expression!r} needs 6 fields, seconds first")
        self.seconds = _values(fields[0], 0, 59)
        self.minutes = _values(fields[1], 0, 59)
        self.hours = _values(fields[2], 0, 23)
        self.days = _values(fields[3], 1, 31)
        self.months = _values(fields[4], 1, 12, _MONTHS)
        self.weekdays = [day % 7 for day in _values(fields[5], 0, 7, _DAYS)]
        self.either = not {fields[3], fields[5]} & {"*", "?"}

    def next(self, after_ms: float) -> float | None:
        """Return the first time after a time, in milliseconds since 1970."""
        start = datetime.fromtimestamp(after_ms // 1000 + 1, timezone.utc)
        midnight = start.replace(hour=0, minute=0, second=0)
        for day in range(_DAYS_MAX):
            date = midnight + timedelta(days=day)
            if not self._is_on(date):
                continue
            for hour in self.hours:
                for minute in self.minutes:
                    for second in self.seconds:
                        at = date.replace(hour=hour, minute=minute, second=second)
                        if at >= start:
                            return at.timestamp() * 1000
        return None

    def _is_on(self, date: datetime) -> bool:
        is_day, is_weekday = date.day in self.days, (date.weekday() + 1) % 7 in self.weekdays
        is_wanted = is_day or is_weekday if self.either else is_day and is_weekday
        return is_wanted and date.month in self.months


def _values(text: str, least: int, most: int, names: list[str] | None = None) -> list[int]:
    def number(part: str) -> int:
        if names and part.upper() in names:
            return names.index(part.upper()) + (least if names is _MONTHS else 0)
        if part.isdigit() and least <= int(part) <= most:
            return int(part)
        raise ValueError(f"Cron field {text!r}: {part!r} is not a value of it")

    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            span = f"{least}-{most}"
        first, _, last = span.partition("-")
        end = number(last) if last else most if step else number(first)
        by = int(step) if step.isdigit() else 0 if step else 1
        if by < 1:
            raise ValueError(f"Cron field {text!r}: {step!r} is not a step")
        found.update(range(number(first), end + 1, by))
    return sorted(found)


@dataclass
class Job:
    """A job; ``state`` is ``waiting``, ``delayed``, ``running``, ``done`` or ``dead``."""

    queue: str
    function_id: str
    payload: Any
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    state: str = "delayed"
    attempts: int = 0
    error: ErrorBody | None = None
    namespace: str | None = None
    timeout_ms: float | None = None
    group: str | None = None


class Queues:
    """Jobs run when their time has come, again after a failure, and are dead in the end."""

    def __init__(self, routing: Routing, names: tuple[str, ...]) -> None:
        self.jobs: list[Job] = []
        self._routing = routing
        self._settings: dict[str, dict[str, Any]] = {name: {} for name in ("default", *names)}
        routing.types["queue"] = TriggerType(self._declare)
        routing.builtins["engine::queue::enqueue"] = lambda job, _metadata: self._add(job)
        routing.function_added = self._retry

    def _declare(self, trigger: dict[str, Any]) -> None:
        config = trigger.get("config") or {}
        self._settings[config.get("name", trigger["function_id"])] = config

    def _retry(self) -> None:
        for job in self.jobs:
            if job.state == "waiting":
                self._begin(job)

    def _add(self, given: dict[str, Any]) -> Any:
        queue = given["queue"]
        if queue not in self._settings:
            raise EngineError("enqueue_error", f"Queue '{queue}' not found")
        if given.get("id") and any(job.id == given["id"] for job in self.jobs):
            return {"messageReceiptId": given["id"], "duplicate": True}
        job = Job(queue, given["function_id"], given.get("data"))
        job.id = given.get("id") or job.id
        job.namespace, job.timeout_ms = given.get("namespace"), given.get("timeout_ms")
        job.group = self._group(queue, job.payload)
        self.jobs.append(job)
        run_at_ms = given.get("run_at_ms", self._routing.wall_ms())
        self._begin_after(job, given.get("delay_ms", run_at_ms - self._routing.wall_ms()))
        return {"messageReceiptId": job.id}

    def _group(self, queue: str, payload: Any) -> str | None:
        settings = self._settings[queue]
        if settings.get("type") != "fifo":
            return None
        name = settings.get("message_group_field")
        if not isinstance(payload, dict) or name not in payload:
            raise EngineError("enqueue_error", f"A job needs {name} as its group")
        return str(payload[name])

    def _begin_after(self, job: Job, ms: float) -> None:
        if ms > 0:
            self._routing.after(ms, lambda: self._begin(job))
        else:
            self._begin(job)

    def _begin(self, job: Job) -> None:
        with self._routing.lock:
            job.state = "waiting"
            held = job.group is not None and job is not next(
                each for each in self._group_of(job) if each.state not in ("done", "dead")
            )
            if held or not self._routing.has(job.function_id, job.namespace):
                return
            job.state = "running"
            job.attempts += 1
            call: dict[str, Any] = {"function_id": job.function_id, "namespace": job.namespace}
            call |= {"payload": job.payload, "timeout_ms": job.timeout_ms}
            self._routing.call(call).add_done_callback(lambda done: self._end(job, done))

    def _group_of(self, job: Job) -> list[Job]:
        return [each for each in self.jobs if (each.queue, each.group) == (job.queue, job.group)]

    def _end(self, job: Job, done: Any) -> None:
        with self._routing.lock:
            error = done.exception()
            settings = self._settings[job.queue]
            if error is not None:
                job.error = {"code": error.code, "message": error.message}
                if job.attempts < settings.get("max_retries", 3):
                    job.state = "delayed"
                    delay = settings.get("backoff_ms", 1000) * 2.0 ** (job.attempts - 1)
                    # A worker that left has not failed: the next attempt follows at once.
                    self._begin_after(job, 0 if error.code == "invocation_stopped" else delay)
                    return
            job.state = "done" if error is None else "dead"
            waiting = [each for each in self._group_of(job) if each.state == "waiting"]
            if job.group is not None and waiting:
                self._begin(waiting[0])


@dataclass(frozen=True)
class Response:
    """A response; ``body`` is parsed if it is JSON, and bytes for ``body_base64``."""

    status: int
    headers: Mapping[str, str]
    body: Any


STATUSES: Final = {"function_not_found": 503, "invocation_stopped": 503, "timeout": 504}
STATUSES_MORE: Final = {"overloaded": 429, "rate_limited": 429}
_PARTS: Final = {"status_code", "statusCode", "headers", "body", "body_base64"}


def send_request(
    routing: Routing,
    method: str,
    target: str,
    body: Any,
    headers: Mapping[str, str],
    limit_s: float,
) -> Response:
    """Send a request to the HTTP trigger that fits."""
    parts = urlsplit(target)
    found = _find_route(routing, method.upper(), parts.path)
    if found is None:
        return _failure(404, "NOT_FOUND", "Not Found")
    trigger, params = found
    config = trigger["config"]
    payload = _payload(config["api_path"], method.upper(), params, parts.query, body, headers)
    target_of = {"namespace": trigger.get("namespace"), "payload": payload}
    try:
        if condition := config.get("condition_function_id"):
            call = routing.call({**target_of, "function_id": condition})
            if call.result(limit_s) is False:
                return _failure(422, "CONDITION_NOT_MET", "Request condition not met")
        function_id = trigger["function_id"]
        if queue := config.get("enqueue"):
            job = {"queue": queue, "function_id": function_id, "data": payload}
            call = routing.call({"function_id": "engine::queue::enqueue", "payload": job})
            return _json(202, call.result(limit_s))
        called = {**target_of, "function_id": function_id, "metadata": trigger.get("metadata")}
        return _response(routing.call(called).result(limit_s))
    except EngineError as error:
        status = {**STATUSES, **STATUSES_MORE}.get(error.code, 500)
        return _failure(status, error.code, error.message, error.details)


def _find_route(
    routing: Routing, method: str, path: str
) -> tuple[dict[str, Any], dict[str, str]] | None:
    best: tuple[str, dict[str, Any], dict[str, str]] | None = None
    for trigger in routing.triggers_of("http"):
        config = trigger["config"]
        wanted = config.get("http_method", "GET").upper()
        if wanted != method and (method, wanted) != ("HEAD", "GET"):
            continue
        fitted = _fit(config["api_path"], path)
        # Of equal routes the one that was registered last serves.
        if fitted is not None and (best is None or fitted[0] <= best[0]):
            best = (fitted[0], trigger, fitted[1])
    return None if best is None else (best[1], best[2])


def _fit(route: str, path: str) -> tuple[str, dict[str, str]] | None:
    """Return the kinds of the segments, literal ones lowest, and the parameters."""
    wanted, parts = route.removeprefix("/").split("/"), path.removeprefix("/").split("/")
    rank, params = "", dict[str, str]()
    for i, segment in enumerate(wanted):
        if i >= len(parts):
            return None
        if segment == "*" and i == len(wanted) - 1:
            return rank + "2", {**params, "*": "/".join(map(unquote, parts[i:]))}
        if segment.startswith(":") and not parts[i]:
            return None
        if segment.startswith(":"):
            params[segment[1:]] = unquote(parts[i])
        elif segment != parts[i]:
            return None
        rank += "1" if segment.startswith(":") else "0"
    return (rank, params) if len(parts) == len(wanted) else None


def _payload(
    route: str,
    method: str,
    params: dict[str, str],
    query: str,
    body: Any,
    headers: Mapping[str, str],
) -> dict[str, Any]:
    kind = "text/plain" if isinstance(body, str) else "application/json"
    own = {"host": "localhost", **({} if body is None else {"content-type": kind})}
    all_headers = {**own, **{name.lower(): value for name, value in headers.items()}}
    if isinstance(body, str) and "json" in all_headers["content-type"]:
        body = json.loads(body)
    pairs = parse_qsl(query, keep_blank_values=True)
    every: dict[str, list[str]] = {}
    for name, value in pairs:
        every.setdefault(name, []).append(value)
    payload = {
        "path": route,
        "method": method,
        "path_params": params,
        "headers": all_headers,
        "query_params": dict(pairs),
        "query_string": query,
        "body": json_copy(body),
        "trigger": {"type": "http", "path": route, "method": method},
    }
    return {**payload, "query_params_all": every} if len(every) < len(pairs) else payload


def _response(value: Any) -> Response:
    if value is None:
        return _json(200, {})
    if not isinstance(value, dict) or not _PARTS & value.keys():
        return (
            Response(200, {"content-type": "text/plain"}, value)
            if isinstance(value, str)
            else _json(200, value)
        )
    status = int(value.get("status_code") or value.get("statusCode") or 200)
    headers = _headers(value.get("headers", {}))
    if "body_base64" in value:
        kind = {"content-type": "application/octet-stream"}
        return Response(status, {**kind, **headers}, base64.b64decode(value["body_base64"]))
    body, kind_of = value.get("body", {}), headers.get("content-type")
    if kind_of is None:
        return _json(status, body, headers)
    is_json = isinstance(body, str) and re.search("json", kind_of) is not None
    return Response(status, headers, json.loads(body) if is_json else body)


def _headers(given: Any) -> dict[str, str]:
    pairs = [line.split(":", 1) for line in given] if isinstance(given, list) else [*given.items()]
    return {
        name.lower(): ", ".join(value) if isinstance(value, list) else str(value).strip()
        for name, value in pairs
    }


def _json(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, {"content-type": "application/json", **(headers or {})}, body)


def _failure(status: int, code: str, message: str, details: Any = None) -> Response:
    error = {"code": code, "message": message, **({"details": details} if details else {})}
    return _json(status, {"error": error})
