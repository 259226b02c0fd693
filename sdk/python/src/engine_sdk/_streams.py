"""
Streams in a worker: items and events of ``engine-stream``.

Everything here is calls of ``stream::*`` and triggers: reading and writing items, sending events,
following both, deciding about subscribers, and keeping the items of a stream in a worker.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ._errors import invalid
from ._handlers import Bound, bind
from ._registrations import Registration, together
from ._requests import TriggerInput, TriggerRequest, check_id

if TYPE_CHECKING:
    from ._worker import Worker


PAGE_ITEMS: Final = 500
"""Items that are read at once."""


class StreamSource(Protocol):
    """
    Keeps the items of a stream in place of the engine, such as in a database.

    Each method gets the payload of its ``stream::`` function, and may also take ``metadata`` and
    ``context``, as any handler; coroutine functions are fine. What it raises reaches the caller as
    ``STREAM_<OP>_ERROR``. A method ``update`` is optional: it gets ``ops`` and returns what ``set``
    does; without it, ``stream::update`` changes the items that the engine keeps.
    """

    def get(self, place: Any, /) -> Any:
        """Return the item of ``stream_name``, ``group_id``, ``item_id``; None: there is none."""
        ...

    def set(self, request: Any, /) -> Any:
        """Store ``data``, and return ``{"old_value": …, "new_value": …}``."""
        ...

    def delete(self, place: Any, /) -> Any:
        """Remove an item, and return ``{"old_value": …}``; None: there was none."""
        ...

    def list(self, group: Any, /) -> Any:
        """Return the items of ``stream_name``, ``group_id``, in the order that clients get."""
        ...

    def list_groups(self, stream: Any, /) -> Any:
        """Return the groups of ``stream_name`` that have items."""
        ...


class _Kind(NamedTuple):
    type: str
    group: str
    what: str


_EVENT: Final = _Kind("stream", "stream-event", "Events")
_JOIN: Final = _Kind("stream:join", "stream-join", "Decides about subscribers")
_LEAVE: Final = _Kind("stream:leave", "stream-leave", "Subscribers that left")


class Stream:
    """
    A stream: items by group and id, kept by ``engine-stream``. Made by `Worker.stream`.

    Its calls raise what `Worker.trigger` does: ``function_not_found`` without ``engine-stream``,
    ``JSON_ERROR`` for a name that is not allowed, ``STREAM_<OP>_ERROR``, ``overloaded``.

    Attributes:
        name: Its name.

    """

    def __init__(self, worker: Worker, name: str) -> None:
        self._worker = worker
        self.name = check_id(name, "name of a stream")

    def group(self, id: str) -> StreamGroup:  # noqa: A002 - the name on the wire
        """Return a group of it; sends nothing."""
        return StreamGroup(self._worker, self.name, check_id(id, "group"))

    def groups(self) -> Any:
        """Return the ids of the groups that have items, sorted."""
        return self._worker.trigger(self._list_groups())

    async def groups_async(self) -> Any:
        """Return the ids of the groups, as `groups`, on the worker's loop or on any other."""
        return await self._worker.trigger_async(self._list_groups())

    def on_event(
        self,
        handler: Callable[..., Any],
        *,
        group_id: str | None = None,
        item_id: str | None = None,
        function_id: str | None = None,
        condition_function_id: str | None = None,
        metadata: Any = None,
    ) -> Registration:
        """
        Call a handler with each event, until it is unregistered. A refusal is logged.

        Args:
            handler: Takes ``{"type": "stream", "timestamp", "streamName", "groupId", "id",
                "event"}``, where ``event`` is ``{"type": "create" | "update" | "delete", "data"}``,
                with the item, or ``{"type": "event", "event": {"type", "data"}}``.
            group_id: Only events of this group.
            item_id: Only events of items with this id.
            function_id: Id of the function; workers that use the same one share the calls. If
                left out, every worker gets every event.
            condition_function_id: Gets the same first; the handler is not called if it
                returns ``False``.
            metadata: Second argument of the handler.

        Returns:
            The registration, for unregistering.

        Raises:
            EngineError: ``INVALID_ARGUMENTS`` for an invalid handler.

        Example:
            worker.stream("chat").on_event(lambda event: print(event["id"]), group_id="room-1")

        """
        config = {"group_id": group_id, "item_id": item_id}
        named = function_id, condition_function_id
        return self._on(_EVENT, handler, named, metadata, config)

    def on_join(
        self,
        handler: Callable[..., Any],
        *,
        function_id: str | None = None,
        condition_function_id: str | None = None,
        metadata: Any = None,
    ) -> Registration:
        """
        Call a handler before a client may follow a group or an item of this stream.

        It refuses by returning ``False`` or ``{"unauthorized": True}``; one that raises refuses as
        well. While no worker has a handler, everyone may follow: let the auth function of
        ``engine-stream`` refuse strangers.

        Args:
            handler: Takes ``{"subscription_id", "stream_name", "group_id", "id", "context"}``.
            function_id: As of `on_event`.
            condition_function_id: As of `on_event`.
            metadata: As of `on_event`.

        Returns:
            The registration, for unregistering.

        Raises:
            EngineError: ``INVALID_ARGUMENTS`` for an invalid handler.

        """
        own = _only_of(self.name, handler, "stream:join")
        return self._on(_JOIN, own, (function_id, condition_function_id), metadata)

    def on_leave(
        self,
        handler: Callable[..., Any],
        *,
        function_id: str | None = None,
        condition_function_id: str | None = None,
        metadata: Any = None,
    ) -> Registration:
        """Call a handler after each subscription that was allowed has ended; as `on_join`."""
        own = _only_of(self.name, handler, "stream:leave")
        return self._on(_LEAVE, own, (function_id, condition_function_id), metadata)

    def _list_groups(self) -> TriggerRequest:
        return {"function_id": "stream::list_groups", "payload": {"stream_name": self.name}}

    def _on(
        self,
        kind: _Kind,
        handler: Callable[..., Any],
        named: tuple[str | None, str | None],
        metadata: Any,
        filters: Mapping[str, str | None] = {},
    ) -> Registration:
        """Register a function, and the trigger that calls it for this stream."""
        given, condition = named
        function_id = f"{kind.group}::{uuid.uuid4()}" if given is None else given
        optional = {**filters, "condition_function_id": condition}
        config = {"stream_name": self.name}
        config |= {key: value for key, value in optional.items() if value is not None}
        called = self._worker.register_function(
            function_id,
            handler,
            description=f"{kind.what} of stream {self.name}",
            metadata={"internal": True},
        )
        wanted: TriggerInput = {"type": kind.type, "function_id": function_id, "config": config}
        if metadata is not None:
            wanted["metadata"] = metadata
        trigger = self._worker.register_trigger(wanted)
        return together(trigger.id, trigger, called)


class StreamGroup:
    """
    A group of a stream. Made by `Stream.group`; the calls raise what those of `Stream` do.

    Every call has a form for coroutines, with ``_async`` at its end.

    Attributes:
        stream: Name of the stream.
        id: Its id.

    """

    def __init__(self, worker: Worker, stream: str, id: str) -> None:  # noqa: A002
        self._worker = worker
        self.stream = stream
        self.id = id

    def get(self, item_id: str) -> Any:
        """Return an item; None: there is none."""
        return self._call("get", item_id=item_id)

    async def get_async(self, item_id: str) -> Any:
        """Return an item; as `get`."""
        return await self._call_async("get", item_id=item_id)

    def set(self, item_id: str, item: Any, ttl_ms: int | None = None) -> Any:
        """
        Store an item; returns when it is on disk.

        All that follow it get ``create`` or ``update``.

        Args:
            item_id: Its id.
            item: Any JSON value.
            ttl_ms: The item is removed after so many milliseconds; None: never.

        Returns:
            ``{"old_value": …, "new_value": …}``; the first is None if there was none.

        """
        return self._call("set", item_id=item_id, **_set(item, ttl_ms))

    async def set_async(self, item_id: str, item: Any, ttl_ms: int | None = None) -> Any:
        """Store an item; as `set`."""
        return await self._call_async("set", item_id=item_id, **_set(item, ttl_ms))

    def update(self, item_id: str, ops: Sequence[Mapping[str, Any]]) -> Any:
        """
        Change an item in one step; a missing one begins as ``{}``.

        Args:
            item_id: Its id.
            ops: Operations such as ``{"type": "increment", "path": "likes", "by": 1}``; also
                ``set``, ``merge``, ``decrement``, ``append``, ``remove``.

        Returns:
            ``{"old_value": …, "new_value": …}``, and ``errors`` of operations that did not fit.

        """
        return self._call("update", item_id=item_id, ops=list(ops))

    async def update_async(self, item_id: str, ops: Sequence[Mapping[str, Any]]) -> Any:
        """Change an item in one step; as `update`."""
        return await self._call_async("update", item_id=item_id, ops=list(ops))

    def delete(self, item_id: str) -> Any:
        """Remove an item and return it; None: there was none."""
        return self._call("delete", item_id=item_id)["old_value"]

    async def delete_async(self, item_id: str) -> Any:
        """Remove an item and return it; as `delete`."""
        return (await self._call_async("delete", item_id=item_id))["old_value"]

    def list(self) -> Any:
        """Return the items, the oldest first."""
        return self._call("list")

    async def list_async(self) -> Any:
        """Return the items; as `list`."""
        return await self._call_async("list")

    def entries(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """
        Iterate over the items with their ids, sorted by id, read page by page.

        Changes meanwhile may be missing. Not where a worker keeps the stream.

        Args:
            prefix: Only ids that begin with it.

        Returns:
            Pairs of id and item.

        """
        query: dict[str, Any] | None = {"prefix": prefix, "limit": PAGE_ITEMS}
        while query is not None:
            page = self._call("list_items", **query)
            yield from ((item["id"], item["data"]) for item in page["items"])
            query = _next_page(query, page)

    async def entries_async(self, prefix: str = "") -> AsyncIterator[tuple[str, Any]]:
        """Iterate over the items with their ids; as `entries`."""
        query: dict[str, Any] | None = {"prefix": prefix, "limit": PAGE_ITEMS}
        while query is not None:
            page = await self._call_async("list_items", **query)
            for item in page["items"]:
                yield item["id"], item["data"]
            query = _next_page(query, page)

    def send(self, type: str, data: Any = None, item_id: str | None = None) -> None:  # noqa: A002
        """
        Send an event to all that follow the group; nothing is stored.

        Args:
            type: Its name, such as ``"typing"``.
            data: Any JSON value.
            item_id: The item that it is about.

        """
        self._call("send", type=type, data=data, id=item_id)

    async def send_async(
        self,
        type: str,  # noqa: A002
        data: Any = None,
        item_id: str | None = None,
    ) -> None:
        """Send an event; as `send`."""
        await self._call_async("send", type=type, data=data, id=item_id)

    def _call(self, op: str, **payload: Any) -> Any:
        return self._worker.trigger(self._request(op, payload))

    async def _call_async(self, op: str, **payload: Any) -> Any:
        return await self._worker.trigger_async(self._request(op, payload))

    def _request(self, op: str, payload: dict[str, Any]) -> TriggerRequest:
        place = {"stream_name": self.stream, "group_id": self.id}
        return {"function_id": f"stream::{op}", "payload": {**place, **payload}}


def create_stream(worker: Worker, name: str, source: StreamSource) -> Registration:
    """Register the functions of a source; see `Worker.create_stream`."""
    check_id(name, "name of a stream")
    ops = ["get", "set", "delete", "list", "list_groups"]
    if getattr(source, "update", None) is not None:
        ops.append("update")
    handlers = {op: getattr(source, op, None) for op in ops}
    for op, handler in handlers.items():  # All are checked before the first one is registered.
        if handler is None:
            raise invalid(f"The source of stream {name} has no method {op}")
        bind(handler, f"{op} of stream {name}")
    description = f"Keeps the items of stream {name}"
    registered = [
        worker.register_function(f"stream::{op}({name})", handler, description=description)
        for op, handler in handlers.items()
        if handler is not None
    ]
    return together(name, *registered)


def _next_page(query: dict[str, Any], page: dict[str, Any]) -> dict[str, Any] | None:
    return {**query, "cursor": page["cursor"]} if "cursor" in page else None


def _set(item: Any, ttl_ms: int | None) -> dict[str, Any]:
    return {"data": item} if ttl_ms is None else {"data": item, "ttl_ms": ttl_ms}


def _only_of(stream: str, handler: Callable[..., Any], what: str) -> Bound:
    """
    Adapt a handler of subscribers: ``False`` refuses.

    An engine that does not know ``stream_name`` in the config also asks about other streams.
    """
    call, is_async = bind(handler, what)

    async def wait(answer: Awaitable[Any]) -> Any:
        return _answer(await answer)

    def decide(payload: Any, metadata: Any, context: Any) -> Any:
        if payload["stream_name"] != stream:
            return None
        answer = call(payload, metadata, context)
        return wait(answer) if inspect.isawaitable(answer) else _answer(answer)

    async def decide_async(payload: Any, metadata: Any, context: Any) -> Any:
        if payload["stream_name"] != stream:
            return None
        return _answer(await call(payload, metadata, context))

    return decide_async if is_async else decide


def _answer(said: Any) -> Any:
    return {"unauthorized": True} if said is False else said
