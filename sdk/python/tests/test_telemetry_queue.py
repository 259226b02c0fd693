"""Records that wait, and how many things may happen in a second."""

from __future__ import annotations

from engine_sdk._limits import TELEMETRY_FRAME_CHARS_MAX
from engine_sdk._telemetry_queue import TelemetryQueue, TokenBucket


def test_records_come_out_oldest_first_by_service() -> None:
    queue = TelemetryQueue()
    for service, text in [("shop", "1"), ("mail", "2"), ("shop", "3")]:
        assert queue.add(service, text)

    assert queue.take_frame() == {"shop": ["1", "3"], "mail": ["2"]}
    assert len(queue) == 0
    assert queue.take_frame() == {}


def test_what_finds_no_room_is_counted_once() -> None:
    queue = TelemetryQueue(10)

    assert [queue.add("shop", text) for text in ("12345", "67890", "x")] == [True, True, False]
    assert [queue.take_dropped(), queue.take_dropped()] == [1, 0]
    queue.take_frame()
    assert queue.add("shop", "1234567890")


def test_frames_are_cut_by_size_but_hold_at_least_one_record() -> None:
    queue = TelemetryQueue(10 * TELEMETRY_FRAME_CHARS_MAX)
    half, large = "x" * (TELEMETRY_FRAME_CHARS_MAX // 2), "y" * (2 * TELEMETRY_FRAME_CHARS_MAX)
    for text in (half, half, half, large, "z"):
        queue.add("shop", text)

    frames = []
    while len(queue):
        frames.append("".join(text[0] for text in queue.take_frame()["shop"]))

    assert frames == ["xx", "x", "y", "z"]


def test_a_bucket_gives_a_seconds_worth_and_fills_with_time() -> None:
    bucket = TokenBucket(100, 0.0)

    def take_all(now_ms: float) -> int:
        return sum(bucket.take(now_ms) for _ in range(500))

    assert [take_all(0), take_all(250), take_all(60_250), take_all(0)] == [100, 25, 100, 0]
