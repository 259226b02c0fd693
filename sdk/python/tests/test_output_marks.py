"""Marks in the output of handlers."""

from __future__ import annotations

import contextvars
import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

from engine_sdk._codec import Invocation
from engine_sdk._context import CURRENT, CallContext
from engine_sdk._output_marks import (
    OUTPUT_LINE_CHARS_MAX,
    finish_output,
    mark_output,
    printing_as_logger,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
MARK = f"\x1b]engine;{TRACE}-{SPAN}\a"


class Stream(io.TextIOWrapper):
    """A stream like the real ones, and what was written to it."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding="utf-8", write_through=True)

    @property
    def text(self) -> str:
        return self.bytes.getvalue().decode()


def begin(monkeypatch: pytest.MonkeyPatch) -> Stream:
    """Mark a new standard output; in the test itself, since pytest sets its own before it."""
    stream = Stream()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setenv("ENGINE_OUTPUT_MARKS", "1")
    mark_output()
    return stream


def handle(task: Callable[[], Any], traceparent: str | None = f"00-{TRACE}-{SPAN}-00") -> None:
    """Run code in the context of a handler."""
    invocation = Invocation("1", "a::b", None, None, None, None, traceparent, None, None, 1)
    context = CallContext(invocation, lambda: 0.0, lambda *_: None)

    def run() -> None:
        CURRENT.set(context)
        task()

    contextvars.copy_context().run(run)


def test_what_a_handler_prints_is_marked_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    out = begin(monkeypatch)

    handle(lambda: print("one", 2, "thr\nee"))

    assert out.text == f"{MARK}one 2 thr\n{MARK}ee\n"


def test_what_is_printed_outside_or_without_a_trace_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    out = begin(monkeypatch)

    print("one")
    handle(lambda: print("two"), None)
    handle(lambda: print("three"), "nonsense")

    assert out.text == "one\ntwo\nthree\n"


def test_an_empty_line_and_a_line_in_pieces_have_one_mark_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = begin(monkeypatch)

    def task() -> None:
        print()
        print("a", end="")
        print("b", end="\n\n")
        sys.stdout.write("")

    handle(task)

    assert out.text == f"{MARK}\n{MARK}ab\n{MARK}\n"


def test_a_mark_never_stands_inside_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    out = begin(monkeypatch)

    print("prompt> ", end="")
    handle(lambda: print("a"))
    handle(lambda: print("b"))

    assert out.text == f"prompt> \n{MARK}a\n{MARK}b\n"


def test_lines_of_handlers_side_by_side_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    out = begin(monkeypatch)
    other = f"00-{TRACE}-{'a' * 16}-00"

    def task() -> None:
        print("one", end=" ")
        handle(lambda: print("other"), other)
        print("two")

    handle(task)

    assert out.text == f"{MARK.replace(SPAN, 'a' * 16)}other\n{MARK}one two\n"


def test_a_line_that_another_thread_began_has_no_second_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = begin(monkeypatch)

    sys.stdout.write("thread")
    handle(lambda: print("a"))
    sys.stdout.write("\n")
    sys.stdout.write("\n")

    assert out.text == f"thread\n{MARK}a\n\n"


def test_what_has_no_end_is_written_at_a_flush_and_at_the_end_of_the_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = begin(monkeypatch)

    def task() -> None:
        print("50 %", end="")
        assert out.text == ""
        sys.stdout.flush()
        assert out.text == f"{MARK}50 %"
        print(" 100 %", end="")
        finish_output()

    handle(task)
    handle(finish_output)

    assert out.text == f"{MARK}50 % 100 %\n"


def test_a_very_long_line_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    out = begin(monkeypatch)
    text = "x" * (OUTPUT_LINE_CHARS_MAX + 1)

    handle(lambda: print(text, end=""))

    assert out.text == MARK + text


def test_write_tells_how_much_the_program_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    begin(monkeypatch)
    counts: list[int] = []
    handle(lambda: counts.append(sys.stdout.write("two\nlines\n")))

    assert counts == [10]
    with pytest.raises(TypeError):
        sys.stdout.write(b"bytes")  # type: ignore[arg-type]


def test_output_of_a_logger_has_its_mark_in_a_handler_and_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = begin(monkeypatch)

    def task() -> None:
        with printing_as_logger():
            print("INFO")

    handle(task)
    task()
    print("after")

    assert out.text == f"{MARK[:-1]};logger\aINFO\n\x1b]engine;;logger\aINFO\nafter\n"


def test_marking_twice_marks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    out = begin(monkeypatch)

    mark_output()
    handle(lambda: print("one"))

    assert out.text == f"{MARK}one\n"


@pytest.mark.parametrize("value", [None, "0", "true"])
def test_nothing_is_marked_without_the_variable(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    stream = Stream()
    monkeypatch.setattr(sys, "stdout", stream)
    if value is not None:
        monkeypatch.setenv("ENGINE_OUTPUT_MARKS", value)
    mark_output()
    handle(lambda: print("one"))

    assert stream.text == "one\n"


def test_a_stream_that_takes_no_other_method_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Fixed:
        __slots__ = ("texts",)

        def __init__(self) -> None:
            self.texts: list[str] = []

        def write(self, text: str) -> int:
            self.texts.append(text)
            return len(text)

    stream = Fixed()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("ENGINE_OUTPUT_MARKS", "1")
    mark_output()
    handle(lambda: print("one"))

    assert "".join(stream.texts) == "one\n"
