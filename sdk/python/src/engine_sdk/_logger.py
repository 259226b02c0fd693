"""What a worker says: on its console, and in the engine's log."""

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
"""Log lines a logger lets wait for a line."""


class Logger:
    """
    Writes to the console and to the engine's log; it never raises and never waits.

    Warnings and errors go to standard error, the rest to standard output.

    Args:
        worker: Whose line to use; left out: that of the worker registered last.
        service_name: Who speaks; left out: the worker, by its name.

    Example:
        Logger().info("order accepted", {"order": 7})

    """

    def __init__(self, worker: Worker | None = None, service_name: str | None = None) -> None:
        self._worker = worker
        self._service_name = service_name
        self._waiting_lines = 0

    def trace(self, message: object, data: Any = None) -> None:
        """Say what only somebody who looks for a fault wants to read."""
        self._write("trace", message, data)

    def debug(self, message: object, data: Any = None) -> None:
        """Say what helps to follow what happens."""
        self._write("debug", message, data)

    def info(self, message: object, data: Any = None) -> None:
        """Say what happened."""
        self._write("info", message, data)

    def warn(self, message: object, data: Any = None) -> None:
        """Say what somebody should look at."""
        self._write("warn", message, data)

    def error(self, message: object, data: Any = None) -> None:
        """Say what failed."""
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
            return  # A log line is not worth an error of its own.

    def _send(
        self, worker: Worker, level: Level, text: str, plain: Any, service: str | None
    ) -> bool:
        """Tell the engine, if it can be told."""
        if worker.telemetry is not None:
            return worker.telemetry.take_log(level, text, plain, service)
        if not self._may_send(worker):
            return False
        with suppress(Exception):  # The line is on the console all the same.
            _call(worker, level, text, plain, service)
            return True
        return False

    def _may_send(self, worker: Worker) -> bool:
        """While there is no line only the first lines wait for one: calls need the room more."""
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
        return  # A console that is closed or gone; the engine may still be told.


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
    """Turn data into what JSON can hold; the rest as Python shows it."""
    if data is None:
        return None
    try:
        return json.loads(json.dumps(data, default=repr, allow_nan=False))
    except Exception:
        return _text_of(data)
