"""
Entries of ``engine-state`` as they are and as they change, in a worker.

An event says only which key changed; the entry is read when the program asks for the next one, so
a program that is slower than the changes gets the latest one of each key, and only keys and
versions are kept for it. All entries are read at first and after each reconnect, page by page, and
compared with the versions that the program has seen: it misses no change and sees none twice.

The algorithm is a generator of steps, which threads and coroutines carry out in their own ways.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Generator
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ._errors import EngineError
from ._reconnect import ConnectionState
from ._registrations import Registration, together
from ._requests import TriggerRequest, check_id
from ._threads import Mailbox, running_loop_mailbox, settle
from ._worker_thread import log, may_block

if TYPE_CHECKING:
    from ._worker import Worker

RETRY_FIRST_S: Final = 0.5
"""First delay until a failed read is repeated; it doubles."""

RETRY_MAX_S: Final = 30.0
"""Longest delay until a failed read is repeated."""

PAGE_ENTRIES: Final = 100
"""Entries of one page."""

READS_AT_ONCE: Final = 16
"""Entries that are read at once."""


class StateChange(NamedTuple):
    """An entry as it is now."""

    key: str
    value: Any
    """None without a value, and for null."""
    version: int
    """For ``expected_version``; 0: there is no value, it was deleted or has expired."""


@dataclass(frozen=True)
class _Calls:
    """Make these calls; the reply is a list of results and errors."""

    requests: list[TriggerRequest]


@dataclass(frozen=True)
class _Wait:
    """Wait for a change or the end; with a delay for that, a new connection or the end."""

    delay_s: float | None


_Step = _Calls | _Wait | StateChange
_Steps = Generator[_Step, Any, None]


class StateWatch:
    """
    Entries of the state, first as they are, then each one that changed.

    Made by `Worker.watch_state`. Iterate over it in one thread, or in one coroutine with
    ``async for``. It begins with the first entry that is asked for, and raises what the first read
    fails with, such as ``function_not_found`` without ``engine-state``; later errors are logged,
    and the read is tried again. As a context manager it is closed at the end of the block; the end
    of the worker closes it too.

    Example:
        with worker.watch_state("stock") as changes:
            for key, value, version in changes:
                print(key, value, version)

    """

    def __init__(self, worker: Worker, scope: str, key: str | None) -> None:
        self._worker = worker
        self._scope = check_id(scope, "scope")
        self._key = None if key is None else check_id(key, "key")
        self._steps: _Steps = self._run()
        self._stepping = threading.RLock()
        """Held while a step runs, which is short: `close` comes from other threads."""
        self._reply: Any = None
        """What the next step gets."""
        self._seen: dict[str, int] = {}
        """Versions that the program has seen; 0: it has seen that there is none."""
        self._state = threading.Condition()
        """Guards the rest; notified when it changes."""
        self._changed: dict[str, None] = {}
        """Keys of which a change was reported, in order."""
        self._is_stale = True
        """All entries have to be compared."""
        self._is_resumed = False
        """There is a new connection since a read failed."""
        self._is_closed = False
        self._waiters: list[tuple[Mailbox, asyncio.Future[None]]] = []

    def close(self) -> None:
        """End it: the iteration stops. Nothing the second time."""
        self._end()
        with self._stepping, suppress(ValueError):  # It runs in this thread, and finds out there.
            self._steps.close()

    def __enter__(self) -> StateWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> StateWatch:
        return self

    def __next__(self) -> StateChange:
        while True:
            step = self._next_step()
            if step is None:
                raise StopIteration
            if isinstance(step, StateChange):
                return step
            if isinstance(step, _Calls):
                # Outside of the invocation whose handler may be running, and of its deadline.
                self._reply = [Context().run(self._call, each) for each in step.requests]
            else:
                with may_block("watch_state()", "watch_state(...).__anext__()"), self._state:
                    self._state.wait_for(partial(self._is_over, step), step.delay_s)

    def __aiter__(self) -> StateWatch:
        return self

    async def __anext__(self) -> StateChange:
        while True:
            step = self._next_step()
            if step is None:
                raise StopAsyncIteration
            if isinstance(step, StateChange):
                return step
            if isinstance(step, _Calls):
                loop = asyncio.get_running_loop()
                tasks = [
                    Context().run(loop.create_task, self._call_async(each))
                    for each in step.requests
                ]
                self._reply = await asyncio.gather(*tasks)
            else:
                await self._waited(step)

    def _next_step(self) -> _Step | None:
        reply, self._reply = self._reply, None
        try:
            with self._stepping:
                return self._steps.send(reply)
        except StopIteration:
            return None

    def _call(self, request: TriggerRequest) -> Any:
        try:
            return self._worker.trigger(request)
        except EngineError as error:
            return error

    async def _call_async(self, request: TriggerRequest) -> Any:
        try:
            return await self._worker.trigger_async(request)
        except EngineError as error:
            return error

    async def _waited(self, wait: _Wait) -> None:
        loop = asyncio.get_running_loop()
        end = None if wait.delay_s is None else loop.time() + wait.delay_s
        while True:
            with self._state:
                if self._is_over(wait):
                    return
                waiter: asyncio.Future[None] = loop.create_future()
                self._waiters.append((running_loop_mailbox(), waiter))
            left = None if end is None else max(0.0, end - loop.time())
            done, _ = await asyncio.wait([waiter], timeout=left)
            if not done:
                return

    def _is_over(self, wait: _Wait) -> bool:
        """Whether a wait has ended before its time; the condition is held."""
        if self._is_closed or (wait.delay_s is None and (self._is_stale or bool(self._changed))):
            return True
        return wait.delay_s is not None and self._is_resumed

    def _run(self) -> _Steps:
        with self._state:
            if self._is_closed:
                return
        registration = self._follow()
        stop_listening = self._worker.on_connection_state(self._connection)
        is_first = True
        retry_s = RETRY_FIRST_S
        reported: str | None = None
        try:
            while True:
                with self._state:
                    if self._is_closed:
                        return
                    is_stale, has_changes = self._is_stale, bool(self._changed)
                    self._is_resumed = False
                try:
                    if is_stale:
                        yield from self._all()
                    elif has_changes:
                        yield from self._some()
                    else:
                        yield _Wait(None)
                    is_first, retry_s, reported = False, RETRY_FIRST_S, None
                except EngineError as error:
                    if self._is_closed:
                        return
                    if is_first:
                        raise
                    if str(error) != reported:
                        reported = str(error)
                        log.error("[engine] The watch of state %s waits: %s", self._scope, error)
                    yield _Wait(retry_s)
                    retry_s = min(2 * retry_s, RETRY_MAX_S)
        finally:
            self._end()
            stop_listening()
            registration.unregister()

    def _follow(self) -> Registration:
        """Register for events; each marks its key."""
        function_id = f"state-changed::{uuid.uuid4()}"
        scope, key = self._scope, self._key

        async def changed(event: Any) -> None:
            with self._state:
                self._changed[event["key"]] = None
                self._wake()

        called = self._worker.register_function(
            function_id,
            changed,
            description=f"Changes of state {scope}" + ("" if key is None else f"/{key}"),
            metadata={"internal": True},
        )
        config = {"scope": scope} if key is None else {"scope": scope, "key": key}
        trigger = self._worker.register_trigger(
            {"type": "state", "function_id": function_id, "config": config}
        )
        return together(trigger.id, trigger, called)

    def _connection(self, state: ConnectionState) -> None:
        if state == "connected":
            with self._state:
                self._is_stale = self._is_resumed = True
                self._wake()
        elif state in ("disconnected", "failed"):
            self.close()

    def _all(self) -> _Steps:
        """Compare all entries with what was seen."""
        with self._state:
            self._is_stale = False
            if self._key is not None:
                self._changed[self._key] = None
                return
        found: set[str] = set()
        cursor: str | None = None
        while True:
            payload = {"scope": self._scope, "limit": PAGE_ENTRIES, "cursor": cursor}
            [page] = yield _Calls([_request("state::list_entries", payload)])
            if isinstance(page, EngineError):
                with self._state:
                    self._is_stale = True
                raise page
            for entry in page["entries"]:
                key, version = entry["key"], entry["version"]
                found.add(key)
                if self._seen.get(key) == version:
                    continue
                self._seen[key] = version
                yield StateChange(key, entry["value"], version)
                if self._is_stale or self._is_closed:  # The page may be old.
                    return
            cursor = page.get("cursor")
            if cursor is None:
                break
        with self._state:
            if not self._is_stale:
                self._changed.update(dict.fromkeys(key for key in self._seen if key not in found))

    def _some(self) -> _Steps:
        """Read some of the entries that changed."""
        with self._state:
            keys = list(self._changed)[:READS_AT_ONCE]
            for key in keys:
                del self._changed[key]
        requests = [_request("state::entry", {"scope": self._scope, "key": key}) for key in keys]
        outcomes = yield _Calls(requests)
        failed = {
            key: each
            for key, each in zip(keys, outcomes, strict=True)
            if isinstance(each, EngineError)
        }
        with self._state:
            self._changed.update(dict.fromkeys(failed))
        for key, entry in zip(keys, outcomes, strict=True):
            if key in failed:
                continue
            value, version = (None, 0) if entry is None else (entry["value"], entry["version"])
            if self._seen.get(key, 0 if self._key is None else None) == version:
                continue
            if version == 0 and self._key is None:
                del self._seen[key]
            else:
                self._seen[key] = version
            yield StateChange(key, value, version)
            if self._is_closed:
                return
        for error in failed.values():
            raise error

    def _end(self) -> None:
        with self._state:
            self._is_closed = True
            self._wake()

    def _wake(self) -> None:
        """Wake all that wait; the condition is held."""
        self._state.notify_all()
        for mailbox, waiter in self._waiters:
            mailbox.put(partial(settle, waiter))
        self._waiters.clear()


def _request(function_id: str, payload: Any) -> TriggerRequest:
    return {"function_id": function_id, "payload": payload}
