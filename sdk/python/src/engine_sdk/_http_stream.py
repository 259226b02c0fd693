"""
Responses of HTTP handlers that are streams (PROTOCOL 6.4).

A handler returns a generator, an async generator or another iterator, as the result or as its
``body``, and it is written to the channel ``response`` of the payload. The call is answered at
once, without a value, so that a stream may go on for longer than any call.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ._channels import ChannelWriter
from ._codec import encode
from ._errors import EngineError

EVENT_STREAM: Final = "text/event-stream"
EVENT_FIELDS: Final = ("event", "data", "id", "retry")
LEAVE_S: Final = 10.0
"""Time for a generator to clean up when the client has left."""


@dataclass
class Streamed:
    """A response that is to be streamed."""

    writer: ChannelWriter
    items: AsyncIterator[Any] | Iterator[Any]
    status: Any = None
    headers: Any = None
    content_type: str = ""

    @property
    def is_async(self) -> bool:
        """Whether its items are awaited."""
        return hasattr(self.items, "__anext__")


def streamed_response(payload: Any, result: Any) -> Streamed | None:
    """Return the response in a handler's result; None if it is none, or has no place."""
    writer = payload.get("response") if isinstance(payload, dict) else None
    if not isinstance(writer, ChannelWriter):
        return None
    if (items := _items(result)) is not None:
        return Streamed(writer, items)
    if not isinstance(result, dict) or (items := _items(result.get("body"))) is None:
        return None
    status = result.get("status_code", result.get("statusCode"))
    return Streamed(writer, items, status, result.get("headers"))


def _items(value: Any) -> AsyncIterator[Any] | Iterator[Any] | None:
    """Return what a stream yields; lists, texts and other values are none."""
    if hasattr(value, "__anext__") or hasattr(value, "__next__"):
        items: AsyncIterator[Any] | Iterator[Any] = value
        return items
    if hasattr(value, "__aiter__"):
        return value.__aiter__()  # type: ignore[no-any-return]
    return None


async def send_stream(streamed: Streamed, gone: Callable[[], None]) -> None:
    """
    Write a response to its end, on the loop; never raises.

    Args:
        streamed: The response.
        gone: Called if the client leaves before; the generator is cancelled then.

    """
    writer = streamed.writer
    sending = asyncio.ensure_future(_send(streamed))
    left = asyncio.ensure_future(writer.left())
    await asyncio.wait({sending, left}, return_when=asyncio.FIRST_COMPLETED)
    if not sending.done() and not writer.is_closing:
        gone()
        sending.cancel()
    await asyncio.wait({sending}, timeout=LEAVE_S)
    left.cancel()


async def _send(streamed: Streamed) -> None:
    writer, items = streamed.writer, streamed.items
    try:
        is_first = True
        async for item in _each(items):
            if is_first:
                for message in head_of(streamed, item):
                    await writer.write_async(message)
            is_first = False
            await writer.write_async(encode_item(item, streamed.content_type))
        if is_first:
            for message in head_of(streamed, b""):
                await writer.write_async(message)
        await writer.close_async()
    except asyncio.CancelledError:
        await _close(items)
        raise
    except BaseException as error:
        await writer.abort_async(f"{type(error).__name__}: {error}")
        await _close(items)


async def _each(items: Any) -> AsyncIterator[Any]:
    if hasattr(items, "__anext__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def _close(items: Any) -> None:
    with contextlib.suppress(BaseException):
        if hasattr(items, "aclose"):
            await items.aclose()
        elif hasattr(items, "close"):
            items.close()


def send_in_thread(streamed: Streamed, gone: Callable[[], None]) -> None:
    """Write a response whose items are not awaited, in a thread; never raises."""
    writer, items = streamed.writer, streamed.items
    assert not isinstance(items, AsyncIterator)
    try:
        is_first = True
        for item in items:
            if is_first:
                for message in head_of(streamed, item):
                    writer.write(message)
            is_first = False
            writer.write(encode_item(item, streamed.content_type))
        if is_first:
            for message in head_of(streamed, b""):
                writer.write(message)
        writer.close()
    except BaseException as error:
        if isinstance(error, EngineError) and error.code == "channel_closed":
            gone()
        with contextlib.suppress(BaseException):
            writer.abort(f"{type(error).__name__}: {error}")
        with contextlib.suppress(BaseException):
            if hasattr(items, "close"):
                items.close()


def head_of(streamed: Streamed, first: Any) -> list[str]:
    """Return the messages with status and headers; sets the content type of the response."""
    messages = []
    if streamed.status is not None:
        status = {"type": "set_status", "status_code": streamed.status}
        messages.append(encode(status, "Status of a response"))
    headers = streamed.headers
    type_ = _content_type(headers)
    if type_ is None and isinstance(first, str):
        type_ = "text/plain; charset=utf-8"
        added = f"content-type: {type_}"
        headers = (
            [*headers, added]
            if isinstance(headers, list)
            else {
                **(headers or {}),
                "content-type": type_,
            }
        )
    streamed.content_type = (type_ or "").lower()
    if headers is not None:
        message = {"type": "set_headers", "headers": headers}
        messages.append(encode(message, "Headers of a response"))
    return messages


def _content_type(headers: Any) -> str | None:
    pairs: list[tuple[str, Any]] = []
    if isinstance(headers, dict):
        pairs = [(str(name), value) for name, value in headers.items()]
    elif isinstance(headers, list):
        pairs = [(name, value) for name, _, value in (str(line).partition(":") for line in headers)]
    for name, value in pairs:
        if name.strip().lower() == "content-type":
            return str(value).strip()
    return None


def encode_item(item: Any, content_type: str) -> bytes:
    """
    Encode one item of a stream.

    Raises:
        EngineError: ``serialization_error`` for what the content type has no form for.

    """
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    if content_type.startswith(EVENT_STREAM):
        return event_of(item).encode()
    text = f"A response that is a stream carries str and bytes; objects need {EVENT_STREAM}"
    raise EngineError("serialization_error", text)


def event_of(item: Any) -> str:
    """
    Return an object as a server-sent event.

    One with no other keys than ``event``, ``data``, ``id`` and ``retry`` gives these fields, any
    other value is the data.
    """
    is_event = isinstance(item, dict) and bool(item) and all(key in EVENT_FIELDS for key in item)
    fields = item if is_event else {"data": item}
    lines = []
    for name in EVENT_FIELDS:
        if name not in fields:
            continue
        value = fields[name]
        text = value if isinstance(value, str) else encode(value, "Server-sent event")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        # A line break would end the field; data may have several lines.
        parts = text.split("\n") if name == "data" else [text.replace("\n", " ")]
        lines += [f"{name}: {part}\n" for part in parts]
    return "".join(lines) + "\n"
