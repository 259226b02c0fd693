"""
Messages of the wire: values to JSON text, messages to frames, and back.

Frames are assembled from encoded parts, so that a payload is encoded once, in the thread that
sends it. Key order is the canonical one (PROTOCOL 1.8). Also here: the announcement
(PROTOCOL 1.4) and the package's version, which it contains.
"""

from __future__ import annotations

import json
import locale
import math
import os
import platform
import re
import socket
from dataclasses import dataclass
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Final

from ._errors import EngineError, ErrorBody
from ._fast import dumps, loads, to_json

MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
"""Largest message on a connection."""

REGISTRATION_BYTES_MAX: Final = 256 * 1024
"""Largest registration that an engine accepts, as a frame."""

JSON_DEPTH_MAX: Final = 128
"""Deepest nesting of arrays and objects in a payload or a result; a flat object has depth 1."""


_escaped = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=to_json
)
_HEAD = re.compile(
    r'\{"type":"(invokefunction|invocationresult)","invocation_id":"([^"\\]+)"'
    r'(?:,"function_id":"([^"\\]+)")?'
)
_PATH_CHARS_MAX: Final = 80
_HINTS: Final = {
    "set": "send a list",
    "frozenset": "send a list",
    "generator": "send a list: list(values)",
    "async_generator": "send a list",
    "coroutine": "await it",
    "bytes": "send a string, such as base64",
    "bytearray": "send a string, such as base64",
    "memoryview": "send a string, such as base64",
    "datetime": "send its isoformat()",
    "date": "send its isoformat()",
    "Decimal": "send a number or a string",
    "UUID": "send a string: str(uuid)",
}
"""What to send instead, by the name of the type that cannot be sent."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(byte for byte in range(256) if chr(byte) not in '[]{}"')

__version__ = "0.1.0"
CAPABILITIES = ["cancel", "timeout", "progress", "batch"]
"""The optional parts of the protocol that this SDK supports (PROTOCOL 1.5)."""


def encode(value: Any, what: str) -> str:
    """
    Encode a value as JSON text.

    Args:
        value: Any JSON value; tuples become lists, keys become text.
        what: What the value is, for the message, such as ``"Payload of math::add"``.

    Returns:
        JSON without spaces, in one line.

    Raises:
        EngineError: ``serialization_error`` when JSON cannot represent the value, when it is
            nested too deeply, or when it is larger than any message may be.

    """
    try:
        text = dumps(value)
        if not text.isascii():
            text.encode()  # Half of a surrogate pair has no UTF-8.
    except UnicodeEncodeError:
        text = _escaped.encode(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        fault = _blame(value, "", 0) or ("", f"{type(error).__name__}: {error}")
        raise _unsendable(what, fault) from None
    if is_too_deep(text, JSON_DEPTH_MAX):
        fault = _blame(value, "", 0) or ("", f"value has over {JSON_DEPTH_MAX} levels")
        raise _unsendable(what, fault)
    check_size(text, what)
    return text


def check_size(text: str, what: str, limit: int = MESSAGE_BYTES_MAX) -> str:
    """
    Check that a text is one that the engine accepts; else it would close the connection.

    Raises:
        EngineError: ``serialization_error``.

    """
    if 4 * len(text) <= limit:
        return text
    size = len(text) if text.isascii() or len(text) > limit else len(text.encode())
    if size > limit:
        message = f"{what} takes {size} bytes; at most {limit} are allowed"
        raise EngineError("serialization_error", message, {"bytes": size, "limit_bytes": limit})
    return text


def check_registration(text: str, id_: str) -> str:
    """
    Check the frame of a registration, which an engine would refuse on each connection.

    Raises:
        EngineError: ``serialization_error``.

    """
    what = f"The registration of {id_}"
    if is_too_deep(text, JSON_DEPTH_MAX):
        reason = f"{what} is nested more deeply than {JSON_DEPTH_MAX} levels"
        raise EngineError("serialization_error", reason)
    return check_size(text, what, REGISTRATION_BYTES_MAX)


def is_too_deep(text: str, depth_max: int) -> bool:
    """
    Return whether a JSON text is nested more deeply than that.

    Counts first, which is enough for nearly all texts. Then removes all but brackets, and pairs of
    them from the inside: each pass removes one level.
    """
    if len(text) <= 2 * depth_max or text.count("[") + text.count("{") <= depth_max:
        return False
    data = text.encode("utf-8", "replace")
    kept = data.translate(_BRACKETS, _OTHERS).replace(b'""', b"")
    if b'"' in kept or b'\\"' in data:  # Strings contain brackets or quotes.
        kept = _STRING.sub(b"", data).translate(_BRACKETS, _OTHERS)
    for _ in range(depth_max):
        size = len(kept)
        kept = kept.replace(b"[]", b"")
        if len(kept) == size:
            break
    return len(kept) > depth_max if b"[]" not in kept else True


def _unsendable(what: str, fault: tuple[str, str]) -> EngineError:
    path, reason = fault
    message = f"{what} cannot be sent as JSON: {reason}"
    return EngineError("serialization_error", message, {"path": path})


def _blame(value: Any, path: str, depth: int) -> tuple[str, str] | None:
    """Find the first part of a value that JSON cannot represent: its path, and what is wrong."""
    name = f"value{path[:_PATH_CHARS_MAX]}{'…' if len(path) > _PATH_CHARS_MAX else ''}"
    if depth >= JSON_DEPTH_MAX and isinstance(value, (dict, list, tuple)):
        levels = f"is nested more deeply than {JSON_DEPTH_MAX} levels, or contains itself"
        return path, f"{name} {levels}"
    if value is None or isinstance(value, (str, int)) or hasattr(value, "__engine_json__"):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else (path, f"{name} is {value}")
    if isinstance(value, dict):
        for key, part in list(value.items()):
            if not isinstance(key, (str, int, float, type(None))):
                return path, f"a key of {name} is a {type(key).__name__}"
            if (found := _blame(part, f"{path}.{key}", depth + 1)) is not None:
                return found
        return None
    if isinstance(value, (list, tuple)):
        for index, part in enumerate(list(value)):
            if (found := _blame(part, f"{path}[{index}]", depth + 1)) is not None:
                return found
        return None
    kind = type(value).__name__
    hint = _HINTS.get(kind)
    return path, f"{name} is a {kind}" + (f"; {hint}" if hint else "")


def quote(text: str) -> str:
    """Encode a string; unlike `encode` it cannot fail."""
    quoted = encode_basestring(text)
    return quoted if quoted.isascii() or _is_whole(quoted) else encode_basestring_ascii(text)


def _is_whole(text: str) -> bool:
    """Whether a string has a UTF-8 form, that is, no unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def frame(type_: str, **parts: str | None) -> str:
    """Assemble a message; parts are JSON text in wire order, None leaves a key out."""
    fields = [f',"{name}":{part}' for name, part in parts.items() if part is not None]
    return f'{{"type":"{type_}"{"".join(fields)}}}'


def encode_ids(type_: str, invocation_id: str | None, function_id: str) -> str:
    """Assemble the prefix of the most frequent messages, as `frame` would."""
    if invocation_id is None:
        return f'{{"type":"{type_}","function_id":{quote(function_id)}'
    ids = f'"invocation_id":{quote(invocation_id)},"function_id":{quote(function_id)}'
    return f'{{"type":"{type_}",{ids}'


def encode_trace(traceparent: str | None, baggage: str | None) -> str:
    """Assemble the trace context fields, as `frame` would."""
    fields = "" if traceparent is None else f',"traceparent":{quote(traceparent)}'
    return fields if baggage is None else f'{fields},"baggage":{quote(baggage)}'


def decode(text: str) -> dict[str, Any]:
    """
    Decode one message.

    Raises:
        ValueError: When the text is not a JSON object with a ``type``.

    """
    if is_too_deep(text, JSON_DEPTH_MAX + 1):  # A payload of the depth that is allowed.
        raise ValueError(f"it is nested more deeply than {JSON_DEPTH_MAX} levels")
    try:
        message = loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ValueError("it is not an object with a type")
    return message


def read_head(text: str) -> tuple[str, str, str | None] | None:
    """Extract type, invocation id and function id from a message that `decode` rejects."""
    head = _HEAD.match(text)
    return (head[1], head[2], head[3]) if head else None


@dataclass(eq=False, slots=True)
class Invocation:
    """One invocation of a function of this worker."""

    invocation_id: str | None
    function_id: str
    payload: Any
    metadata: Any
    timeout_ms: float | None
    deadline: float | None
    """Milliseconds, on the clock of the session."""
    traceparent: str | None
    baggage: str | None
    caller: str | None
    connection: int
    """Number of the connection that it arrived on."""


@dataclass(frozen=True)
class TriggerInstance:
    """
    A trigger, as the provider of its type sees it.

    When a trigger ends, only `id` and `trigger_type` are set. After a reconnect the engine sends
    its triggers again, each with the same id.

    Attributes:
        id: Identifies the trigger.
        trigger_type: Its type.
        function_id: The function to call when it fires.
        config: The configuration that the type defines; ``{}`` if absent.
        metadata: To be passed to the function with every call.
        namespace: Namespace of the function; None: the default one.

    """

    id: str
    trigger_type: str
    function_id: str = ""
    config: Any = None
    metadata: Any = None
    namespace: str | None = None


def read_invocation(message: dict[str, Any], connection: int, now: float) -> Invocation:
    """
    Read ``invokefunction``.

    Raises:
        ValueError: When it names no function.

    """
    timeout = message.get("timeout_ms")
    timeout_ms = timeout if isinstance(timeout, (int, float)) and timeout > 0 else None
    return Invocation(
        invocation_id=_text(message, "invocation_id"),
        function_id=_required(message, "function_id"),
        payload=message.get("data"),
        metadata=message.get("metadata"),
        timeout_ms=timeout_ms,
        deadline=None if timeout_ms is None else now + timeout_ms,
        traceparent=_text(message, "traceparent"),
        baggage=_text(message, "baggage"),
        caller=_text(message, "caller"),
        connection=connection,
    )


def read_trigger(message: dict[str, Any]) -> TriggerInstance:
    """
    Read ``registertrigger``.

    Raises:
        ValueError: When the id or the type is missing.

    """
    config = message.get("config")
    return TriggerInstance(
        id=_required(message, "id"),
        trigger_type=_required(message, "trigger_type"),
        function_id=_text(message, "function_id") or "",
        config={} if config is None else config,
        metadata=message.get("metadata"),
        namespace=_text(message, "namespace"),
    )


def result_frame(invocation: Invocation, result: str | None, error: str | None) -> str:
    """Encode the answer to an invocation; parts are JSON text."""
    ids = encode_ids("invocationresult", invocation.invocation_id or "", invocation.function_id)
    trace = encode_trace(invocation.traceparent, invocation.baggage)
    if error is not None:
        return f'{ids}{trace},"error":{error}}}'
    return f"{ids}{trace}}}" if result is None else f'{ids}{trace},"result":{result}}}'


def trigger_result_frame(trigger: TriggerInstance, error: str | None) -> str:
    """Encode a provider's answer to ``registertrigger``."""
    return frame(
        "triggerregistrationresult",
        id=quote(trigger.id),
        trigger_type=quote(trigger.trigger_type),
        function_id=quote(trigger.function_id),
        error=error,
    )


def encode_error(body: ErrorBody) -> str:
    """Encode an error object; details that JSON cannot represent are left out."""
    try:
        return encode(body, "Error")
    except Exception:
        slim: ErrorBody = {"code": body["code"], "message": body["message"]}
        return encode(slim, "Error")


def _required(message: dict[str, Any], key: str) -> str:
    value = _text(message, key)
    if value is None:
        raise ValueError(f"it has no {key}")
    return value


def _text(message: dict[str, Any], key: str) -> str | None:
    value = message.get(key)
    return value if isinstance(value, str) else None


def announcement(name: str, description: str | None, namespace: str | None) -> str:
    """Encode the frame that announces this worker to the engine."""
    metadata: dict[str, Any] = {
        "runtime": "python",
        "version": __version__,
        "name": name,
        "os": f"{platform.system().lower()} {platform.release()} ({platform.machine()})",
        "pid": os.getpid(),
        "isolation": os.environ.get("ENGINE_ISOLATION") or None,
        "capabilities": CAPABILITIES,
        "telemetry": {
            "language": _language(),
            "project_name": None,
            "framework": "engine-sdk-py",
        },
    }
    if description is not None:
        metadata["description"] = description
    if namespace is not None:
        metadata["namespace"] = namespace
    return frame(
        "invokefunction",
        function_id=quote("engine::workers::register"),
        action='{"type":"void"}',
        data=encode(metadata, "Announcement"),
    )


def worker_name(option: str | None) -> str:
    """Return the option, else ``ENGINE_WORKER_NAME``, else ``<hostname>:<pid>``."""
    return option or os.environ.get("ENGINE_WORKER_NAME") or f"{socket.gethostname()}:{os.getpid()}"


def _language() -> str | None:
    try:
        language = locale.getlocale()[0]
    except ValueError:
        return None  # A locale that Python cannot parse.
    return language.replace("_", "-") if language else None
