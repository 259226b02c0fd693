"""
The errors of this package, and how they travel.

EngineError
  InvocationError   a call that failed: the callee's error, the engine's, or the SDK's own

Every one has a code for programs, a message for people and details to act on.
"""

from __future__ import annotations

import json
import traceback
from typing import Any, Final, TypedDict

STACKTRACE_CHARS_MAX: Final = 32 * 1024
"""What travels of a stack; its end says most."""


RETRYABLE_CODES = frozenset({"overloaded", "channel_send_failed"})
"""Codes that mean: the handler did not start, and the same call may succeed later."""


class _ErrorBodyRequired(TypedDict):
    code: str
    message: str


class ErrorBody(_ErrorBodyRequired, total=False):
    """A failure as it travels."""

    stacktrace: str
    details: dict[str, Any]
    retryable: bool


class EngineError(Exception):
    """
    A failure with a code; a handler that raises one sends its code, details and ``retryable``.

    Attributes:
        code: What happened, for programs, such as ``"function_not_found"`` or one of your own.
        message: What happened, for people: one sentence.
        details: The values to act on; an empty dict if there are none.
        retryable: Whether the handler did not start and the same call may succeed later.

    Example:
        >>> raise EngineError("out_of_stock", "Only 2 left", {"left": 2})
        Traceback (most recent call last):
        engine_sdk.EngineError: out_of_stock: Only 2 left

    """

    __module__ = "engine_sdk"  # Tracebacks show the name that programs import.

    def __init__(
        self,
        code: str,
        message: str,
        details: dict[str, Any] | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.details: dict[str, Any] = details or {}
        self.retryable = code in RETRYABLE_CODES if retryable is None else retryable

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class InvocationError(EngineError):
    """
    A call that failed.

    Attributes:
        function_id: The function that was called.
        invocation_id: The call, as the engine's logs name it; ``None`` if it never had an id.
        stacktrace: Where the handler failed, in the callee's process; ``None`` if not told.

    """

    __module__ = "engine_sdk"

    def __init__(
        self,
        code: str,
        message: str,
        details: dict[str, Any] | None = None,
        retryable: bool | None = None,
        *,
        function_id: str = "",
        invocation_id: str | None = None,
        stacktrace: str | None = None,
    ) -> None:
        super().__init__(code, message, details, retryable)
        self.function_id = function_id
        self.invocation_id = invocation_id
        self.stacktrace = stacktrace


def invalid(message: str) -> EngineError:
    """Make the error for what user code handed over wrongly."""
    return EngineError("INVALID_ARGUMENTS", message)


def is_timeout(error: object) -> bool:
    """
    Tell whether a failure is a deadline that passed.

    Args:
        error: Whatever was caught.

    Returns:
        True for the engine's ``timeout`` and for ``TIMEOUT``, which the SDK raises itself.

    Example:
        >>> is_timeout(InvocationError("TIMEOUT", "invocation timed out after 50ms"))
        True

    """
    return isinstance(error, EngineError) and error.code in ("timeout", "TIMEOUT")


def normalise_error(error: Any) -> ErrorBody:
    """Turn any ``error`` field that arrived into a body: a bare string has code UNKNOWN."""
    if not isinstance(error, dict):
        bare = error if isinstance(error, str) else json.dumps(error)
        return {"code": "UNKNOWN", "message": bare}
    code, message = error.get("code"), error.get("message")
    body: ErrorBody = {
        "code": code if isinstance(code, str) else "UNKNOWN",
        "message": message if isinstance(message, str) else json.dumps(message or error),
    }
    if isinstance(error.get("stacktrace"), str):
        body["stacktrace"] = error["stacktrace"]
    if isinstance(error.get("details"), dict):
        body["details"] = error["details"]
    if isinstance(error.get("retryable"), bool):
        body["retryable"] = error["retryable"]
    return body


def invocation_error(body: ErrorBody, function_id: str, invocation_id: str | None) -> Exception:
    """Make the error that a failed call raises."""
    return InvocationError(
        body["code"],
        body["message"],
        body.get("details"),
        body.get("retryable", False),
        function_id=function_id,
        invocation_id=invocation_id,
        stacktrace=body.get("stacktrace"),
    )


def describe_raised(raised: BaseException) -> ErrorBody:
    """
    Describe whatever a handler raised, as it travels.

    An error with a text ``code`` keeps it with its details; everything else is
    ``invocation_failed`` with its text and its stack.
    """
    own = getattr(raised, "code", None)
    # The code of a SystemExit is what the process was to end with.
    has_own = isinstance(own, str) and own and not isinstance(raised, SystemExit)
    code = str(own) if has_own else "invocation_failed"
    body: ErrorBody = {"code": code, "message": _text_of(raised)}
    body["stacktrace"] = "".join(traceback.format_exception(raised))[-STACKTRACE_CHARS_MAX:]
    details = getattr(raised, "details", None)
    if isinstance(details, dict) and details:
        body["details"] = details
    if getattr(raised, "retryable", None) is True:
        body["retryable"] = True
    return body


def _text_of(raised: BaseException) -> str:
    kind = type(raised).__name__
    if isinstance(raised, EngineError):
        return raised.message
    try:
        text = str(raised)
    except Exception:
        return kind  # An error whose own text fails is still an error.
    # The text of a KeyError is the bare key, that of a SystemExit a number.
    return f"{kind}: {text}" if isinstance(raised, (KeyError, SystemExit)) else text or kind
