"""What the engine sends, read once into values, and the answers to it as frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._codec import encode, encode_ids, encode_trace, frame, quote
from ._errors import ErrorBody


@dataclass(eq=False, slots=True)
class Invocation:
    """One run of a function of this worker; `line` numbers the line it came on."""

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
    line: int


@dataclass(frozen=True)
class TriggerInstance:
    """
    A trigger, as the provider of its type sees it.

    When one ends, only `id` and `trigger_type` are told. After a lost line the engine hands
    its triggers over again, each with the id it had.

    Attributes:
        id: Names the trigger from now on.
        trigger_type: Its type.
        function_id: The function to call when it happens.
        config: What the type wanted to know; ``{}`` if nothing was given.
        metadata: To be handed to the function with every call.
        namespace: Namespace of the function; None: the default one.

    """

    id: str
    trigger_type: str
    function_id: str = ""
    config: Any = None
    metadata: Any = None
    namespace: str | None = None


def read_invocation(message: dict[str, Any], line: int, now: float) -> Invocation:
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
        line=line,
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
    """Make the answer to an invocation; parts are JSON text."""
    ids = encode_ids("invocationresult", invocation.invocation_id or "", invocation.function_id)
    trace = encode_trace(invocation.traceparent, invocation.baggage)
    if error is not None:
        return f'{ids}{trace},"error":{error}}}'
    return f"{ids}{trace}}}" if result is None else f'{ids}{trace},"result":{result}}}'


def trigger_result_frame(trigger: TriggerInstance, error: str | None) -> str:
    """Make a provider's answer to ``registertrigger``."""
    return frame(
        "triggerregistrationresult",
        id=quote(trigger.id),
        trigger_type=quote(trigger.trigger_type),
        function_id=quote(trigger.function_id),
        error=error,
    )


def encode_error(body: ErrorBody) -> str:
    """Encode an error object; details that JSON cannot hold are left out."""
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
