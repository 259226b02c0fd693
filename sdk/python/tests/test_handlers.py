"""The arguments of a handler, and the log of those that fail."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import pytest

from engine_sdk import EngineError
from engine_sdk._errors import describe_raised
from engine_sdk._handlers import FAILURES_LOGGED_MAX, FAILURES_WINDOW_MS, FailureLog, bind


class Callable_:  # noqa: N801
    def __call__(self, payload: Any, metadata: Any) -> Any:
        return [payload, metadata]


class AsyncCallable:
    async def __call__(self, payload: Any) -> Any:
        return payload


def keyword_only(payload: Any, *, context: Any) -> Any:
    return [payload, context]


def required_by_name(payload: Any, *, shop: str) -> Any:
    return [payload, shop]


async def coroutine(payload: Any) -> Any:
    return payload


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (lambda p: [p], ["p"]),
        (lambda p, m: [p, m], ["p", "m"]),
        (lambda p, m, c: [p, m, c], ["p", "m", "c"]),
        (lambda p, shop="s": [p, shop], ["p", "s"]),
        (lambda p, metadata=None: [p, metadata], ["p", "m"]),
        (lambda p, metadata=None, context=None: [p, metadata, context], ["p", "m", "c"]),
        (lambda p, metadata=None, shop="s": [p, metadata, shop], ["p", "m", "s"]),
        (lambda p, m, context=None: [p, m, context], ["p", "m", "c"]),
        (lambda p, context=None: [p, context], ["p", None]),
        (lambda p="x": [p], ["p"]),
        (lambda *args: list(args), ["p"]),
        (lambda p, **rest: [p, rest], ["p", {}]),
        (keyword_only, ["p", "c"]),
        (Callable_(), ["p", "m"]),
        (Callable_().__call__, ["p", "m"]),
        (functools.partial(keyword_only, context="mine"), ["p", "c"]),
        (str.upper, "P"),
        (len, 1),
        (dict.fromkeys, {"p": None}),
    ],
)
def test_a_handler_gets_what_it_has_room_for(handler: Callable[..., Any], expected: Any) -> None:
    call, is_async = bind(handler, "a::b")
    context: Any = "c"

    assert call("p", "m", context) == expected
    assert not is_async


@pytest.mark.parametrize(
    "handler", [coroutine, functools.partial(coroutine), AsyncCallable(), AsyncCallable().__call__]
)
def test_a_coroutine_function_is_known_as_one(handler: Callable[..., Any]) -> None:
    assert bind(handler, "a::b")[1]


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (None, "Handler of a::b must be callable, not NoneType"),
        ("name", "must be callable, not str"),
        (lambda: None, r"must take \(payload\)"),
        (lambda a, b, c, d: None, r"must take \(payload\)"),
        (lambda **rest: None, r"must take \(payload\)"),
        (required_by_name, "Handler of a::b requires shop, which the SDK does not pass"),
    ],
)
def test_a_handler_that_cannot_be_called_is_refused(handler: Any, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        bind(handler, "a::b")


def failed(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as raised:
        return raised


def test_an_unexpected_error_is_logged_with_its_traceback_as_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, logger="engine_sdk")
    FailureLog(lambda: 0).note("py::div", describe_raised(failed(ZeroDivisionError("by zero"))))

    lines = caplog.messages[0].split("\n")
    assert lines[0] == "[engine] py::div failed:"
    assert lines[1] == "  Traceback (most recent call last):"
    assert lines[-1] == "  ZeroDivisionError: by zero"


def test_an_error_that_the_handler_meant_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    FailureLog(lambda: 0).note("py::take", describe_raised(failed(EngineError("sold_out", "No"))))

    assert caplog.messages == []


def test_many_failures_are_bounded_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = FailureLog(lambda: now)
    error = describe_raised(failed(ValueError("no")))
    for _ in range(FAILURES_LOGGED_MAX + 5):
        log.note("py::f", error)
    assert len(caplog.messages) == FAILURES_LOGGED_MAX

    now = FAILURES_WINDOW_MS
    log.note("py::f", error)
    assert caplog.messages[FAILURES_LOGGED_MAX] == "[engine] 5 more failed calls were not logged"
    assert len(caplog.messages) == FAILURES_LOGGED_MAX + 2
