import logging

import pytest

from engine_sdk import EngineError
from engine_sdk._errors import describe_raised
from engine_sdk._failures import FAILURES_LOGGED_MAX, FAILURES_WINDOW_MS, FailureLog


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
