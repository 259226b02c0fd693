"""For tests of direct calls: an engine on a socket in this process, and actions within a call."""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from websockets.frames import Frame, Opcode
from websockets.sync.server import Server, ServerConnection, serve

from engine_sdk import Worker, _direct, _lease, _threads
from engine_sdk._direct import DirectCalls
from engine_sdk._lease import Lease
from fakes import LIMIT_S, REGISTERED

Message = dict[str, Any]

CALLER = """
import signal, sys, threading
from engine_sdk import register_worker
signal.signal(signal.SIGINT, signal.default_int_handler)  # Background jobs of a shell ignore it.
worker = register_worker(sys.argv[1])
def call():
    while True:
        worker.trigger({"function_id": "echo", "payload": 1})
for _ in range(300):
    worker.trigger({"function_id": "echo", "payload": 1})
print("calling", flush=True)
"""
"""A program that gets the address of its engine, up to where it calls."""


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

    def __init__(
        self, instruction: int, action: Callable[[], object], lease: Lease | None = None
    ) -> None:
        self.lease = lease
        self.latest = None if lease is None else lease.exchange
        self.was_direct = False
        """Whether a call was made on the lease."""
        self.left = instruction
        self.action: Callable[[], object] | None = action
        self._before = sys.gettrace()
        """The tracer of coverage, which all later tests need."""

    def __enter__(self) -> At:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        latest = None if self.lease is None else self.lease.exchange
        self.was_direct = latest is not None and latest is not self.latest and latest.is_sent

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


def echo(worker: Worker, payload: Any = None) -> Any:
    return worker.trigger({"function_id": "echo", "payload": payload})


def direct_of(worker: Worker) -> DirectCalls:
    assert worker._thread.direct is not None
    return worker._thread.direct


def wait_until(holds: Callable[[], bool], do: Callable[[], object] = lambda: None) -> None:
    ends_at = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < ends_at, "never held"
        do()
        time.sleep(0)


def lent(worker: Worker) -> Lease:
    """Call until the loop lends the connection; returns the lease."""
    offers = direct_of(worker)._offers
    wait_until(lambda: bool(offers), lambda: echo(worker))
    return offers[-1]


class Interrupted(Exception):  # noqa: N818 - not an error
    """What a signal handler raises."""


def interrupt(*_: object) -> None:
    raise Interrupted


def each_instruction(worker: Worker, action: Callable[[], object]) -> Iterator[At]:
    """Give an `At` for each instruction of a direct call, the last one for none."""
    instruction = 0
    while True:
        at = At(instruction, action, lent(worker))
        yield at
        if at.has_run:
            instruction += 1
        elif at.was_direct:
            return  # Otherwise the lease had ended before the call.


def invocation(number: int) -> str:
    ids = {"invocation_id": f"i{number}", "function_id": "here"}
    return json.dumps({"type": "invokefunction", **ids, "data": number})


def others_first(connection: ServerConnection, message: Message) -> None:
    for number in range(3):
        connection.socket.sendall(framed(invocation(number)))
    time.sleep(0.001)
    connection.socket.sendall(framed(result_of(message)))


def others_with_it(connection: ServerConnection, message: Message) -> None:
    before, after = framed(invocation(0)), framed(invocation(1)) + framed(invocation(2))
    connection.socket.sendall(before + framed(result_of(message)) + after)


def others_behind_it(connection: ServerConnection, message: Message) -> None:
    after = b"".join(framed(invocation(number)) for number in range(3))
    connection.socket.sendall(framed(result_of(message)) + after)


def others_after_it(connection: ServerConnection, message: Message) -> None:
    connection.socket.sendall(framed(result_of(message)))
    for number in range(3):
        connection.socket.sendall(framed(invocation(number)))


def in_one_frame(connection: ServerConnection, message: Message) -> None:
    texts = [invocation(0), result_of(message), invocation(1), invocation(2)]
    connection.socket.sendall(framed("\n".join(texts)))


def in_parts(connection: ServerConnection, message: Message) -> None:
    data = framed(result_of(message)) + b"".join(framed(invocation(n)) for n in range(3))
    for at in range(0, len(data), 7):
        connection.socket.sendall(data[at : at + 7])
        time.sleep(0.0001)


MIXTURES = [others_first, others_with_it, others_behind_it, others_after_it, in_one_frame, in_parts]


def stress(worker: Worker, seconds: float) -> None:
    """
    Let the main thread call while a timer raises there; from half time on 8 others too.

    It lasts for so long, and until enough was done.
    """
    failures: list[BaseException] = []
    counts = {"calls": 0, "raised": 0, "within": 0}
    ends_at = time.monotonic() + seconds
    is_armed = False

    def is_over() -> bool:
        now = time.monotonic()
        assert now < ends_at + LIMIT_S, counts
        return now > ends_at and threads[0].ident is not None and min(counts.values()) > 10

    def check_echo(payload: Any) -> None:
        try:
            got = echo(worker, payload)
            assert got == payload
            counts["calls"] += 1
        except Interrupted:
            raise
        except BaseException as error:
            failures.append(error)

    def handle(*_: object) -> None:
        nonlocal is_armed
        if is_armed:
            is_armed = False
            if random.random() < 0.5:
                counts["within"] += 1
                check_echo("within")
            raise Interrupted

    def call(number: int) -> None:
        while not is_over():
            check_echo([number, random.random(), "x" * random.randrange(300)])
            if random.random() < 0.2:
                time.sleep(random.random() / 100)

    threads = [threading.Thread(target=call, args=(n,), daemon=True) for n in range(8)]
    previous = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0023)
    try:
        while not is_over():
            if time.monotonic() > ends_at - seconds / 2 and threads[0].ident is None:
                for thread in threads:
                    thread.start()
            try:
                is_armed = True
                for _ in range(50):
                    check_echo(random.random())
                is_armed = False
            except Interrupted:
                counts["raised"] += 1
    finally:
        is_armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    assert failures == []
