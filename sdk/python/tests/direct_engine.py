"""For tests of direct calls: an engine on a socket in this process, and actions within a call."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from websockets.frames import Frame, Opcode
from websockets.sync.server import Server, ServerConnection, serve

from engine_sdk import _direct, _lease, _threads
from fakes import REGISTERED

Message = dict[str, Any]


class SocketEngine:
    """Answers each call with its payload, unless `answers` has something else for its function."""

    def __init__(self) -> None:
        self.connections = 0
        self.calls: list[str] = []
        """Ids of the functions called."""
        self.answers: dict[str, Callable[[ServerConnection, Message], None]] = {}
        self.results: list[Message] = []
        """Answers of the worker."""
        options: Any = {"compression": None, "max_size": None, "subprotocols": ["engine.batch.v1"]}
        self.server: Server = serve(self._serve, "127.0.0.1", 0, **options)
        self.url = f"ws://127.0.0.1:{self.server.socket.getsockname()[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _serve(self, connection: ServerConnection) -> None:
        connection.send(json.dumps(REGISTERED))
        for frame in connection:
            for text in frame.split("\n") if isinstance(frame, str) else ():
                self._take(connection, json.loads(text))

    def _take(self, connection: ServerConnection, message: Message) -> None:
        if message.get("function_id") == "engine::workers::register":
            self.connections += 1
        elif message["type"] == "invocationresult":
            self.results.append(message)
        elif message["type"] == "invokefunction":
            self.calls.append(message["function_id"])
            answer = self.answers.get(message["function_id"])
            if answer is None:
                connection.send(result_of(message))
            else:
                answer(connection, message)


def result_of(message: Message, **fields: Any) -> str:
    ids = {key: message[key] for key in ("invocation_id", "function_id")}
    result = {} if "error" in fields else {"result": message.get("data")}
    return json.dumps({"type": "invocationresult", **ids, **result, **fields})


def framed(text: str) -> bytes:
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=False)


class At:
    """Runs an action once, before a given instruction in this thread."""

    files = (_direct.__file__, _lease.__file__, _threads.__file__)

    def __init__(self, instruction: int, action: Callable[[], object]) -> None:
        self.left = instruction
        self.action: Callable[[], object] | None = action
        self._before = sys.gettrace()
        """The tracer of coverage, which all later tests need."""

    def __enter__(self) -> At:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    @property
    def has_run(self) -> bool:
        return self.action is None

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in self.files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and self.action is not None:
            self.left -= 1
            if self.left < 0:
                action, self.action = self.action, None
                sys.settrace(None)
                action()
        return self._trace
