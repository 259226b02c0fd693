"""Errors and their form on the wire."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from engine_sdk import EngineError, InvocationError, is_timeout
from engine_sdk._codec import encode_error
from engine_sdk._errors import describe_raised, normalise_error


class Refused(Exception):  # noqa: N818
    code = "refused"
    details = {"left": 2}  # noqa: RUF012
    retryable = True


class Silent(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise ValueError("no text")


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("boom"), {"code": "invocation_failed", "message": "boom"}),
        (ValueError(), {"code": "invocation_failed", "message": "ValueError"}),
        (KeyError("a"), {"code": "invocation_failed", "message": "KeyError: 'a'"}),
        (SystemExit(3), {"code": "invocation_failed", "message": "SystemExit: 3"}),
        (SystemExit("bye"), {"code": "invocation_failed", "message": "SystemExit: bye"}),
        (Silent(), {"code": "invocation_failed", "message": "Silent"}),
        (EngineError("mine", "text"), {"code": "mine", "message": "text"}),
        (EngineError("", "text"), {"code": "invocation_failed", "message": "text"}),
        (EngineError("m", "t", {"a": 1}), {"code": "m", "message": "t", "details": {"a": 1}}),
        (
            Refused("no"),
            {"code": "refused", "message": "no", "details": {"left": 2}, "retryable": True},
        ),
        (
            InvocationError("overloaded", "later", function_id="x"),
            {"code": "overloaded", "message": "later", "retryable": True},
        ),
    ],
)
def test_whatever_is_raised_travels_with_its_code(
    error: BaseException, expected: dict[str, Any]
) -> None:
    body = dict(describe_raised(raised(error)))

    assert type(error).__name__ in str(body.pop("stacktrace"))
    assert body == expected


def test_a_stack_is_cut_at_its_start() -> None:
    body = describe_raised(raised(ValueError("x" * 100_000 + "END")))

    assert len(body["stacktrace"]) == 32 * 1024
    assert body["stacktrace"].rstrip().endswith("END")


def test_details_that_json_cannot_hold_are_left_out() -> None:
    text = encode_error({"code": "c", "message": "m", "details": {"at": object()}})

    assert text == '{"code":"c","message":"m"}'


def test_normalise_error_keeps_only_what_has_the_right_type() -> None:
    error = {"code": "c", "message": "m", "stacktrace": 1, "details": [], "retryable": "yes"}

    assert normalise_error(error) == {"code": "c", "message": "m"}
    full = {"code": "c", "message": "m", "stacktrace": "s", "details": {"a": 1}, "retryable": True}
    assert normalise_error(full) == full


def test_is_timeout_knows_the_engines_code_and_the_sdks() -> None:
    assert is_timeout(EngineError("timeout", ""))
    assert is_timeout(InvocationError("TIMEOUT", ""))
    assert not is_timeout(EngineError("cancelled", ""))
    assert not is_timeout(TimeoutError())


def test_errors_read_well_and_survive_pickling() -> None:
    error = InvocationError("c", "m", {"a": 1}, True, function_id="f", invocation_id="i")

    copy = pickle.loads(pickle.dumps(error))

    assert str(copy) == "c: m"
    assert (copy.details, copy.retryable, copy.function_id) == ({"a": 1}, True, "f")
