"""What a ``traceparent`` says, and what is none."""

from __future__ import annotations

import pytest

from engine_sdk._traceparent import looks_sampled, read_traceparent

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("flags", "sampled"), [("00", False), ("01", True), ("02", False), ("ff", True)]
)
def test_ids_and_the_decision_are_read(flags: str, sampled: bool) -> None:
    text = f"00-{TRACE}-{SPAN}-{flags}"

    assert read_traceparent(text) == (TRACE, SPAN, sampled)
    assert looks_sampled(text) == sampled


def test_a_later_version_may_have_more_behind() -> None:
    read = read_traceparent(f"01-{TRACE}-{SPAN}-01-more")

    assert read is not None
    assert read.span_id == SPAN


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"01-{TRACE}-{SPAN}-011",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
    ],
)
def test_whatever_has_another_form_counts_as_absent(text: str | None) -> None:
    assert read_traceparent(text) is None


@pytest.mark.parametrize("text", ["", "1", f"00-{TRACE}-{SPAN}-0"])
def test_a_text_that_is_too_short_looks_like_one_that_is_not(text: str) -> None:
    assert not looks_sampled(text)
