"""What a worker has to say: on standard error, and in the engine's log."""

from __future__ import annotations

import json
import sys
from typing import Any, Literal

from ._context import CURRENT
from ._process import PROCESS
from ._requests import TriggerAction
from ._worker import Worker

Level = Literal["trace", "debug", "info", "warn", "error"]


class Logger:
    """
    Writes lines to standard error and to the engine's log; it never raises.

    Args:
        worker: Whose line to use; left out: that of the worker registered last.
        service_name: Who speaks, as the engine's log shows it.

    Example:
        Logger().info("Order accepted", {"order": 7})

    """

    def __init__(self, worker: Worker | None = None, service_name: str | None = None) -> None:
        self._worker = worker
        self._service_name = service_name

    def trace(self, message: object, data: Any = None) -> None:
        """Say where the program is; data is anything, best what JSON can hold."""
        self._write("trace", message, data)

    def debug(self, message: object, data: Any = None) -> None:
        """Say what helps to find a fault."""
        self._write("debug", message, data)

    def info(self, message: object, data: Any = None) -> None:
        """Say what happened."""
        self._write("info", message, data)

    def warn(self, message: object, data: Any = None) -> None:
        """Say what somebody must look at."""
        self._write("warn", message, data)

    def error(self, message: object, data: Any = None) -> None:
        """Say what failed."""
        self._write("error", message, data)

    def _write(self, level: Level, message: object, data: Any) -> None:
        try:
            text = str(message)
            plain = None if data is None else json.loads(json.dumps(data, default=repr))
            rest = "" if plain is None else " " + json.dumps(plain, ensure_ascii=False)
            print(f"{level:<5} {text}{rest}", file=sys.stderr, flush=True)
            self._send(level, text, plain)
        except Exception:
            return  # A log line is not worth an error of its own.

    def _send(self, level: Level, text: str, data: Any) -> None:
        worker = self._worker or PROCESS.last
        if not isinstance(worker, Worker):
            return
        payload = {"message": text}
        if data is not None:
            payload["data"] = data
        if self._service_name is not None:
            payload["service_name"] = self._service_name
        context = CURRENT.get()
        parts = (context.traceparent or "").split("-") if context else []
        if len(parts) == 4:
            payload["trace_id"], payload["span_id"] = parts[1], parts[2]
        worker.trigger(
            {
                "function_id": f"engine::log::{level}",
                "payload": payload,
                "action": TriggerAction.Void(),
            }
        )
