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
"""Characters of a stack trace that are sent; the end is kept, as it says most."""


RETRYABLE_CODES = frozenset(
    {"overloaded", "channel_send_failed", "engine_unreachable", "rate_limited"}
)
"""Codes of calls whose handler did not start and which may succeed later."""


class _ErrorBodyRequired(TypedDict):
    code: str
    message: str


class ErrorBody(_ErrorBodyRequired, total=False):
    """An error as it is sent (PROTOCOL 2.10)."""

    stacktrace: str
    details: dict[str, Any]
    retryable: bool


class EngineError(Exception):
    """
    An error with a code; a handler that raises one sends its code, details and ``retryable``.

    Attributes:
        code: Identifies the error for programs: ``"function_not_found"`` or one of your own.
        message: Describes the error for people, in one sentence.
        details: Values to act on; an empty dict if there are none.
        retryable: Whether the handler did not start and the same call may succeed later.

    Example:
        >>> raise EngineError("out_of_stock", "Only 2 left", {"left": 2})
        Traceback (most recent call last):
        engine_sdk.EngineError: out_of_stock: Only 2 left

    """

    __module__ = "engine_sdk"  # Tracebacks show the public name.

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
        stacktrace: Stack of the handler in the callee's process; ``None`` if not sent.

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
    """Return the error for an invalid argument of user code."""
    return EngineError("INVALID_ARGUMENTS", message)


def is_timeout(error: object) -> bool:
    """
    Return whether an error means that a deadline passed.

    Args:
        error: Any caught exception.

    Returns:
        True for the engine's ``timeout`` and for ``TIMEOUT``, which the SDK raises itself.

    Example:
        >>> is_timeout(InvocationError("TIMEOUT", "invocation timed out after 50ms"))
        True

    """
    return isinstance(error, EngineError) and error.code in ("timeout", "TIMEOUT")


def normalise_error(error: Any) -> ErrorBody:
    """Convert a received ``error`` field to a body: a bare string gets code ``UNKNOWN``."""
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
    """Convert an error body to the exception that a failed call raises."""
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
    Convert any exception of a handler to an error body.

    An exception with a string ``code`` keeps it with its details; every other becomes
    ``invocation_failed`` with its text and its stack.
    """
    own = getattr(raised, "code", None)
    # The code of a SystemExit is an exit code.
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
        return kind  # Its __str__ raises.
    # The text of a KeyError is the bare key, that of a SystemExit an exit code.
    return f"{kind}: {text}" if isinstance(raised, (KeyError, SystemExit)) else text or kind
