"""Records that wait to be sent: bounded, oldest first. Any thread may add."""

from __future__ import annotations

import threading
from collections import deque

from ._limits import TELEMETRY_FRAME_CHARS_MAX, TELEMETRY_QUEUE_CHARS_MAX


class TelemetryQueue:
    """The records of one signal; what does not fit is counted."""

    def __init__(self, chars_max: int = TELEMETRY_QUEUE_CHARS_MAX) -> None:
        self._chars_max = chars_max
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, str]] = deque()
        self._chars = 0
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, service: str, text: str) -> bool:
        """Take a record in; false when there is no room."""
        with self._lock:
            if self._chars + len(text) > self._chars_max:
                self._dropped += 1
                return False
            self._waiting.append((service, text))
            self._chars += len(text)
            return True

    def take_dropped(self) -> int:
        """Tell how many found no room since this was asked last."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
            return dropped

    def take_frame(self) -> dict[str, list[str]]:
        """Take out the oldest, about as many as a frame should hold, by service."""
        groups: dict[str, list[str]] = {}
        size = 0
        with self._lock:
            while self._waiting:
                service, text = self._waiting[0]
                if size > 0 and size + len(text) > TELEMETRY_FRAME_CHARS_MAX:
                    break
                self._waiting.popleft()
                self._chars -= len(text)
                size += len(text)
                groups.setdefault(service, []).append(text)
        return groups


class TokenBucket:
    """So many things in a second, and a second's worth at once at most; for any thread."""

    def __init__(self, per_second: float, now_ms: float) -> None:
        self._lock = threading.Lock()
        self._per_second = per_second
        self._tokens = per_second
        self._at = now_ms

    def take(self, now_ms: float) -> bool:
        """Take one, if there is one."""
        with self._lock:
            gained = max(0.0, now_ms - self._at) * self._per_second / 1000
            self._tokens = min(self._per_second, self._tokens + gained)
            self._at = now_ms
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True
