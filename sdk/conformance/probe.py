"""The probe worker of the Python SDK; README.md says what a probe offers."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

from engine_sdk import (
    CallContext,
    ChannelReader,
    ChannelWriter,
    EngineError,
    InitOptions,
    InvocationError,
    Logger,
    TriggerAction,
    TriggerInstance,
    is_timeout,
    register_worker,
)

Json = dict[str, Any]

worker = register_worker(options=InitOptions(token=os.environ["CONFORMANCE_TOKEN"]))
logger = Logger()


def report(function_id: str, payload: Json) -> None:
    """Send a report to the script."""
    function_id = f"conformance::{function_id}"
    worker.trigger({"function_id": function_id, "payload": payload, "action": TriggerAction.Void()})


async def outcome_of(request: Json, cancel_after_s: float | None = None) -> Json:
    """Make a call and describe how it ended."""
    progress: list[Any] = []
    call = asyncio.ensure_future(
        worker.trigger_async({**request, "on_progress": progress.append})  # type: ignore[typeddict-item]
    )
    if cancel_after_s is not None:
        asyncio.get_running_loop().call_later(cancel_after_s, call.cancel)
    try:
        result = await call
    except asyncio.CancelledError:
        error: Json = {"code": "cancelled", "message": "asyncio.CancelledError"}
        return {"ok": False, "progress": progress, "error": error}
    except InvocationError as raised:
        names = ("code", "message", "function_id", "invocation_id", "stacktrace", "details")
        error = {name: getattr(raised, name) for name in (*names, "retryable")}
        outcome = {"ok": False, "progress": progress, "error": error}
        return {**outcome, "is_timeout": is_timeout(raised)}
    outcome = {"ok": True, "progress": progress}
    return outcome if result is None else {**outcome, "result": result}


def start(payload: Json) -> None:
    """Start a call in a thread and a loop of its own, outside of any handler."""

    def run() -> None:
        time.sleep(payload.get("delay_ms", 0) / 1000)
        cancel_after_ms = payload.get("cancel_after_ms")
        cancel_after_s = None if cancel_after_ms is None else cancel_after_ms / 1000
        outcome = asyncio.run(outcome_of(payload["request"], cancel_after_s))
        time.sleep(payload.get("report_delay_ms", 0) / 1000)
        report("outcome", {"tag": payload["tag"], "outcome": outcome})

    threading.Thread(target=run, daemon=True).start()


async def wait(payload: Json) -> None:
    """Wait for the cancellation of this invocation."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        report("cancelled", {"tag": payload["tag"]})
        raise


def deep(payload: Json) -> list[Any]:
    """Return lists in lists."""
    value: list[Any] = []
    for _ in range(payload["levels"] - 1):
        value = [value]
    return value


def fail(payload: Json) -> None:
    """Raise an error of the SDK."""
    raise EngineError(payload["code"], payload["message"], payload["details"], payload["retryable"])


def crash(payload: Json) -> None:
    """Raise an error that the SDK does not know."""
    raise RuntimeError(payload["message"])


def send_progress(payload: Json, metadata: Any, context: CallContext) -> None:
    """Send progress during the invocation."""
    for value in payload["values"]:
        context.progress(value)


def send_late_progress(payload: Json, metadata: Any, context: CallContext) -> None:
    """Send progress after the invocation."""
    threading.Timer(0.05, context.progress, [payload["value"]]).start()


def shut_down(payload: Json) -> None:
    """Shut down in a thread of its own, with a call pending."""
    outcomes: list[Json] = []

    def call() -> None:
        outcomes.append(asyncio.run(outcome_of({"function_id": "conformance::never"})))

    def run() -> None:
        calling = threading.Thread(target=call, daemon=True)
        calling.start()
        time.sleep(0.2)
        worker.shutdown()
        calling.join()
        print(json.dumps({"tag": payload["tag"], "outcome": outcomes[0]}), flush=True)

    # Threads of handlers are daemons, and so would be what they start.
    threading.Thread(target=run, daemon=False).start()


def read_all(reader: ChannelReader, parts_max: float = float("inf")) -> Json:
    """Read until the end, or so many parts."""
    parts: list[Any] = []
    try:
        for part in reader:
            parts.append(part if isinstance(part, str) else len(part))
            if len(parts) >= parts_max:
                reader.cancel()
                break
    except EngineError as error:
        return {"parts": parts, "error": error.code}
    return {"parts": parts}


def write_all(writer: ChannelWriter, payload: Json) -> Json:
    """Write texts and numbers of bytes, then end; with ``repeats`` until that fails."""
    try:
        while True:
            for part in payload["parts"]:
                writer.write(bytes(part) if isinstance(part, int) else part)
            if not payload.get("repeats"):
                break
            time.sleep(0.01)
        if "abort" in payload:
            writer.abort(payload["abort"])
        else:
            writer.close()
    except EngineError as error:
        return {"error": error.code}
    return {}


def pass_channel(payload: Json) -> Json:
    """Make a channel, pass its reader in a call, and write."""
    channel = worker.create_channel()
    results: list[Any] = []

    def call() -> None:
        payload = {"reader": channel.reader}
        results.append(worker.trigger({"function_id": "conformance::take", "payload": payload}))

    calling = threading.Thread(target=call, daemon=True)
    calling.start()
    written = write_all(channel.writer, payload)
    calling.join()
    return {"ok": written == {}, "result": results[0]}


def take_channel(payload: Json) -> Json:
    """Read the channel that a call returns."""
    return read_all(worker.trigger({"function_id": "conformance::give"})["reader"])


def stream(payload: Json) -> Json:
    """Return a stream."""
    headers = {"content-type": "text/plain"}
    return {"status_code": 201, "headers": headers, "body": iter(payload["parts"])}


async def follow(payload: Json) -> None:
    """Report a configuration's value, now and whenever it changes."""

    def tell(value: Any) -> None:
        report("configured", {"value": value})

    async def run() -> None:
        live = await worker.configuration_async(payload["id"])
        tell(live.value)
        live.on_change(tell)

    FOLLOWING.append(asyncio.create_task(run()))


FOLLOWING: list[asyncio.Task[None]] = []


class Items:
    """The stream ``probe-items``."""

    def __init__(self) -> None:
        self.items: Json = {}

    def get(self, place: Json) -> Any:
        """Return an item."""
        return self.items.get(place["item_id"])

    def set(self, request: Json) -> Json:
        """Store an item."""
        old = self.items.get(request["item_id"])
        self.items[request["item_id"]] = request["data"]
        return {"old_value": old, "new_value": request["data"]}

    def delete(self, place: Json) -> Json:
        """Remove an item."""
        return {"old_value": self.items.pop(place["item_id"], None)}

    def list(self, group: Json) -> Any:
        """Return the items."""
        return [*self.items.values()]

    def list_groups(self, stream: Json) -> Any:
        """Return the one group."""
        return ["g"]


worker.create_stream("probe-items", Items())


class Watch:
    """The provider of the trigger type ``probe-watch``."""

    def register_trigger(self, trigger: TriggerInstance) -> None:
        """Start a trigger, or refuse it."""
        if refuse := trigger.config.get("refuse"):
            raise RuntimeError(refuse)
        names = ("id", "function_id", "config", "metadata")
        report("trigger_started", {name: getattr(trigger, name) for name in names})

    def unregister_trigger(self, trigger: TriggerInstance) -> None:
        """Stop a trigger."""
        report("trigger_stopped", {"id": trigger.id})


@dataclass
class Numbered:
    """A number."""

    n: int


@dataclass
class Typed:
    """Numbers; ``wrong``: answer with a result that does not fit."""

    items: list[Numbered]
    wrong: bool = False


class Sum(TypedDict):
    """Their sum."""

    sum: int


def typed(payload: Typed) -> Sum:
    """Add numbers."""
    total: Any = "none" if payload.wrong else sum(item.n for item in payload.items)
    return {"sum": total}


registered = {
    "trigger": worker.register_trigger(
        {
            "type": "http",
            "function_id": "probe::echo",
            "config": {"api_path": "/probe", "http_method": "POST"},
            "metadata": {"from": "probe"},
        }
    ),
    "function": worker.register_function("probe::extra", lambda payload: None),
    "trigger_type": worker.register_trigger_type(
        {"id": "probe-watch", "description": "A type of the probe"}, Watch()
    ),
}
functions: dict[str, Callable[..., Any]] = {
    "probe::metadata": lambda payload, metadata: metadata,
    "probe::nothing": lambda payload: None,
    "probe::size": len,
    "probe::large": lambda payload: "x" * payload["chars"],
    "probe::deep": deep,
    "probe::fail": fail,
    "probe::crash": crash,
    "probe::note": lambda payload: report("noted", {"tag": payload["tag"]}),
    "probe::wait": wait,
    "probe::progress": send_progress,
    "probe::late_progress": send_late_progress,
    "probe::call": lambda payload: outcome_of(payload["request"]),
    "probe::start": start,
    "probe::unregister": lambda payload: registered[payload["what"]].unregister(),
    "probe::configuration": follow,
    "probe::log": lambda payload: logger.info(payload["message"]),
    "probe::shutdown": shut_down,
    "probe::channel_hold": lambda payload: None,
    "probe::channel_read": lambda payload: read_all(
        payload["list"][0]["reader"], payload.get("parts_max", float("inf"))
    ),
    "probe::channel_write": lambda payload: write_all(payload["writer"], payload),
    "probe::channel_pass": pass_channel,
    "probe::channel_take": take_channel,
    "probe::stream": stream,
}
worker.register_function("probe::typed", typed)
worker.register_function(
    "probe::echo",
    lambda payload: payload,
    description="Returns its payload",
    request_format={},
    metadata={"probe": True},
)
for function_id, handler in functions.items():
    worker.register_function(function_id, handler)
worker.register_function("probe::ready", lambda payload: None)
