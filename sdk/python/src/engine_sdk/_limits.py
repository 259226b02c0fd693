"""Every bound of this package, with its unit in its name; PROTOCOL 12 fixes most."""

from __future__ import annotations

from typing import Final

ENGINE_URL_DEFAULT: Final = "ws://127.0.0.1:49134"
"""Where a worker looks for the engine when nobody says otherwise."""

CALL_TIMEOUT_MS: Final = 30_000
"""A call without a time-out of its own."""

TIMEOUT_GRACE_MS: Final = 1_000
"""How long to wait beyond a deadline for the engine's own word on it."""

TIMEOUT_MS_MAX: Final = 604_800_000
"""The longest time-out a call may ask for: a week."""

MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
"""Largest message on a line."""

MESSAGE_SLACK_BYTES: Final = 1024 * 1024
"""What an incoming message may exceed that by: its envelope is the engine's."""

BATCH_CHARS_MAX: Final = 256 * 1024
"""Messages share a frame up to this size: below 1 MiB, whatever the characters."""

QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of calls that wait for the line."""

OFFLINE_LOG_LINES_MAX: Final = 1_000
"""Log lines a logger lets wait for a line."""

ID_CHARS_MAX: Final = 1_024
"""Longest id of a function, a trigger or a type, in characters."""

STACKTRACE_CHARS_MAX: Final = 32 * 1024
"""What travels of a stack; its end says most."""

PING_INTERVAL_MS: Final = 20_000
"""How often a line is pinged."""

SILENCE_MS: Final = 60_000
"""A line from which nothing came for so long is dead."""

OPEN_TIMEOUT_MS: Final = 10_000
"""A line has to be open by then."""

CLOSE_TIMEOUT_MS: Final = 10_000
"""How long a peer may take to answer a close."""

LEAVE_MS: Final = 2_000
"""What ``shutdown()`` gives queued frames, cancelled handlers and the peer, each."""

REGISTER_WAIT_MS: Final = 30_000
"""How long ``register_worker`` waits for the line before it goes on without."""

RECONNECT_FIRST_MS: Final = 1_000
"""First wait before a worker dials again."""

RECONNECT_MAX_MS: Final = 30_000
"""Longest wait before a worker dials again."""

RECONNECT_JITTER: Final = 0.3
"""Part of the wait that chance adds or takes."""

THREADS_BUSY_MAX: Final = 32
"""Sync handlers that compute at the same time, unless an option says otherwise."""

THREADS_LOOKUP_MAX: Final = 8
"""Threads for name look-ups and for what coroutines hand to ``asyncio.to_thread``."""

THREADS_MAX: Final = 1_024
"""Threads in all, those included that wait for a call of their own."""

THREAD_IDLE_MS: Final = 10_000
"""A thread that nobody needed for so long ends."""

TELEMETRY_BATCH_MS: Final = 100
"""Logs and spans wait so long for more of them before they are sent."""

TELEMETRY_QUEUE_CHARS_MAX: Final = 1024 * 1024
"""Logs that wait to be sent, in characters, and spans; beyond, they are left out."""

TELEMETRY_FRAME_CHARS_MAX: Final = 256 * 1024
"""Characters of logs or spans in one frame; the rest waits for the next."""

TELEMETRY_VALUE_CHARS_MAX: Final = 32 * 1024
"""Longest text in telemetry; the rest is cut off."""

SPANS_PER_SECOND: Final = 100
"""Spans of handlers that a worker sends in a second."""

GAUGES_MS: Final = 5_000
"""How often a worker tells what it uses, unless OTEL_METRIC_EXPORT_INTERVAL says."""

GAUGES_MS_MIN: Final = 500
"""Shortest such time."""

GAUGES_MS_MAX: Final = 3_600_000
"""Longest such time."""

GAUGES_FIRST_MS: Final = 1_000
"""How soon a worker tells it first."""

LOOP_LAG_SAMPLE_MS: Final = 50
"""How often a worker looks whether its event loop is late."""

OUTPUT_LINE_CHARS_MAX: Final = 64 * 1024
"""Longest beginning of a printed line that is kept until the line is whole."""
