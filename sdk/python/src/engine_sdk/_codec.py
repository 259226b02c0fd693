"""
Values to JSON text, messages to frames, and back.

Frames are put together from parts that are text already, so that a payload is encoded
once, in the thread of whoever sent it. Key order is the canonical one (PROTOCOL 1.8).
"""

from __future__ import annotations

import json
import math
import re
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from ._errors import EngineError
from ._json import dumps, loads
from ._limits import MESSAGE_BYTES_MAX

_escaped = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
_HEAD = re.compile(
    r'\{"type":"(invokefunction|invocationresult)","invocation_id":"([^"\\]+)"'
    r'(?:,"function_id":"([^"\\]+)")?'
)
_DEPTH_MAX = 60


def encode(value: Any, what: str) -> str:
    """
    Encode one value as JSON text.

    Args:
        value: Anything JSON can hold; tuples become lists, keys become text.
        what: What the value is, for the message, such as ``"Payload of math::add"``.

    Returns:
        JSON without spaces, in one line.

    Raises:
        EngineError: ``serialization_error`` when JSON cannot hold the value, or when it is
            larger than any message may be.

    """
    try:
        text = dumps(value)
        if not text.isascii():
            text.encode()  # Half of a surrogate pair has no UTF-8.
    except UnicodeEncodeError:
        text = _escaped.encode(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        reason = _blame(value, "value", 0) or f"{type(error).__name__}: {error}"
        message = f"{what} cannot be sent as JSON: {reason}"
        raise EngineError("serialization_error", message) from None
    if len(text) > MESSAGE_BYTES_MAX:
        message = f"{what} is {len(text)} bytes; a message holds at most {MESSAGE_BYTES_MAX}"
        raise EngineError("serialization_error", message)
    return text


def _blame(value: Any, path: str, depth: int) -> str | None:
    """Find the first part of a value that JSON cannot hold."""
    if depth > _DEPTH_MAX:
        return f"{path[:80]}… is nested too deeply or holds itself"
    if value is None or isinstance(value, (str, int)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{path} is {value}"
    if isinstance(value, dict):
        for key, part in list(value.items()):
            if not isinstance(key, (str, int, float, type(None))):
                return f"a key of {path} is a {type(key).__name__}"
            if (found := _blame(part, f"{path}.{key}", depth + 1)) is not None:
                return found
        return None
    if isinstance(value, (list, tuple)):
        for index, part in enumerate(list(value)):
            if (found := _blame(part, f"{path}[{index}]", depth + 1)) is not None:
                return found
        return None
    return f"{path} is a {type(value).__name__}"


def quote(text: str) -> str:
    """Encode a text; unlike `encode` it cannot fail."""
    quoted = encode_basestring(text)
    return quoted if quoted.isascii() or _is_whole(quoted) else encode_basestring_ascii(text)


def _is_whole(text: str) -> bool:
    """Whether a text has a UTF-8 form: no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def frame(type_: str, **parts: str | None) -> str:
    """Put a message together; parts are JSON text in wire order, None leaves a key out."""
    fields = [f',"{name}":{part}' for name, part in parts.items() if part is not None]
    return f'{{"type":"{type_}"{"".join(fields)}}}'


def encode_ids(type_: str, invocation_id: str | None, function_id: str) -> str:
    """Make the beginning of the messages there are most of, as `frame` would."""
    if invocation_id is None:
        return f'{{"type":"{type_}","function_id":{quote(function_id)}'
    ids = f'"invocation_id":{quote(invocation_id)},"function_id":{quote(function_id)}'
    return f'{{"type":"{type_}",{ids}'


def encode_trace(traceparent: str | None, baggage: str | None) -> str:
    """Make the fields of a trace, as `frame` would."""
    told = "" if traceparent is None else f',"traceparent":{quote(traceparent)}'
    return told if baggage is None else f'{told},"baggage":{quote(baggage)}'


def decode(text: str) -> dict[str, Any]:
    """
    Read one message.

    Raises:
        ValueError: When the text is not a JSON object with a ``type``.

    """
    try:
        message = loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ValueError("it is not an object with a type")
    return message


def read_head(text: str) -> tuple[str, str, str | None] | None:
    """Read type, invocation id and function id of a message that `decode` cannot read."""
    head = _HEAD.match(text)
    return (head[1], head[2], head[3]) if head else None
