"""
What waits to be written to the line, in order.

A frame belongs to the line it was made for and goes with it. A call belongs to its caller:
it stays while there is no line, until its time is over.
"""

from __future__ import annotations

from collections import deque

from ._limits import QUEUED_BYTES_MAX
from ._waiting import Call


class Outbox:
    """Frames and calls, oldest first."""

    def __init__(self) -> None:
        self._items: deque[Call | str | _Kept] = deque()
        self._queued_bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    def add_frame(self, frame: str) -> None:
        """Put a frame of the present line last."""
        self._items.append(frame)

    def add_kept(self, frame: str) -> None:
        """Put a frame last that also the next line is to carry."""
        self._items.append(_Kept(frame))

    def add_call(self, call: Call, now: float) -> bool:
        """Put a call last; false when too much waits already."""
        if self._queued_bytes and self._queued_bytes + call.weight > QUEUED_BYTES_MAX:
            self._drop_over(now)
            if self._queued_bytes + call.weight > QUEUED_BYTES_MAX:
                return False
        self._queued_bytes += call.weight
        self._items.append(call)
        return True

    def take(self, now: float) -> str | None:
        """Take the next frame; a call counts as sent from now on."""
        while self._items:
            item = self._items.popleft()
            if isinstance(item, str):
                return item
            if isinstance(item, _Kept):
                return item.frame
            self._queued_bytes -= item.weight
            if _is_over(item, now):
                continue
            item.sent = True
            return item.encode(now)
        return None

    def begin_line(self, first: list[str]) -> None:
        """Put the first frames of a new line before whatever was kept."""
        self.end_line()
        self._items.extendleft(reversed(first))

    def end_line(self) -> None:
        """Drop what belonged to a line that is gone."""
        self._items = deque(item for item in self._items if not isinstance(item, str))

    def _drop_over(self, now: float) -> None:
        self._items = deque(
            item for item in self._items if not (isinstance(item, Call) and _is_over(item, now))
        )
        self._queued_bytes = sum(item.weight for item in self._items if isinstance(item, Call))


class _Kept:
    def __init__(self, frame: str) -> None:
        self.frame = frame


def _is_over(call: Call, now: float) -> bool:
    return call.done or call.deadline <= now
