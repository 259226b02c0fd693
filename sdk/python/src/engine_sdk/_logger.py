"""The logger of workers: writes to the console and to the engine's log."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext, suppress
from typing import Any, Final

from ._context import CURRENT
from ._otlp import Level, read_traceparent
from ._output_marks import printing_as_logger
from ._process import PROCESS
from ._requests import TriggerAction
from ._worker import Worker

OFFLINE_LOG_LINES_MAX: Final = 1_000
"""Log lines that a logger queues while the worker is not connected."""


class Logger:
    """
    Writes to the console and to the engine's log; it never raises and never blocks.

    Warnings and errors go to standard error, the rest to standard output.

    Args:
        worker: The worker whose connection to use; default: the one registered last.
        service_name: The name that is logged; default: the worker's.

    Example:
        Logger().info("order accepted", {"order": 7})

    """

    def __init__(self, worker: Worker | None = None, service_name: str | None = None) -> None:
        self._worker = worker
        self._service_name = service_name
        self._waiting_lines = 0

    def trace(self, message: object, data: Any = None) -> None:
        """Log details for tracing a fault."""
        self._write("trace", message, data)

    def debug(self, message: object, data: Any = None) -> None:
        """Log details for following the program."""
        self._write("debug", message, data)

    def info(self, message: object, data: Any = None) -> None:
        """Log an event."""
        self._write("info", message, data)

    def warn(self, message: object, data: Any = None) -> None:
        """Log something that needs attention."""
        self._write("warn", message, data)

    def error(self, message: object, data: Any = None) -> None:
        """Log a failure."""
        self._write("error", message, data)

    def _write(self, level: Level, message: object, data: Any) -> None:
        try:
            worker = self._worker or PROCESS.last
            known = worker if isinstance(worker, Worker) else None
            service = self._service_name or (known.name if known else None)
            text, plain = _text_of(message), _plain(data)
            sent = known is not None and self._send(known, level, text, plain, service)
            with printing_as_logger() if sent else nullcontext():
                _print(level, text, plain, service)
        except Exception:
            return  # Logging must not fail the program.

    def _send(
        self, worker: Worker, level: Level, text: str, plain: Any, service: str | None
    ) -> bool:
        """Send the line to the engine; false when it is dropped."""
        if worker.telemetry is not None:
            return worker.telemetry.take_log(level, text, plain, service)
        if not self._may_send(worker):
            return False
        with suppress(Exception):  # The console gets the line in any case.
            _call(worker, level, text, plain, service)
            return True
        return False

    def _may_send(self, worker: Worker) -> bool:
        """Limit what is queued while disconnected, to leave the queue to calls."""
        state = worker.connection_state
        self._waiting_lines = 0 if state == "connected" else self._waiting_lines + 1
        return state not in ("failed", "disconnected") and (
            self._waiting_lines <= OFFLINE_LOG_LINES_MAX
        )


def _print(level: Level, text: str, plain: Any, service: str | None) -> None:
    name = f" [{service}]" if service else ""
    rest = "" if plain is None else " " + json.dumps(plain, ensure_ascii=False)
    stream = sys.stderr if level in ("warn", "error") else sys.stdout
    try:
        print(f"{level.upper():<5}{name} {text}{rest}", file=stream, flush=True)
    except (OSError, ValueError, AttributeError):
        return  # The console is closed; the engine may still get the line.


def _call(worker: Worker, level: Level, text: str, plain: Any, service: str | None) -> None:
    payload = {"message": text}
    if plain is not None:
        payload["data"] = plain
    if service is not None:
        payload["service_name"] = service
    context = CURRENT.get()
    ids = read_traceparent(context.traceparent) if context else None
    if ids is not None:
        payload["trace_id"], payload["span_id"] = ids.trace_id, ids.span_id
    function_id = f"engine::log::{level}"
    worker.trigger({"function_id": function_id, "payload": payload, "action": TriggerAction.Void()})


def _text_of(message: object) -> str:
    try:
        return str(message)
    except Exception:
        return f"<{type(message).__name__}>"


def _plain(data: Any) -> Any:
    """Convert data to JSON values; others to their ``repr``."""
    if data is None:
        return None
    try:
        return json.loads(json.dumps(data, default=repr, allow_nan=False))
    except Exception:
        return _text_of(data)
