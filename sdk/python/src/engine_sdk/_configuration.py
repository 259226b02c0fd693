"""
A value of ``engine-configuration`` that stays current in a worker.

An event says only that something changed; the value is always read with ``configuration::get``,
which expands references. It is read after each event and after each reconnect, one read at a time,
and replaced as a whole. What cannot be read leaves the value as it is, is reported, and is tried
again.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from ._errors import EngineError, invalid
from ._reconnect import ConnectionState
from ._registrations import Registration, together
from ._requests import TriggerRequest, check_id
from ._session import SHUTDOWN
from ._threads import Mailbox, Work, running_loop_mailbox, settle
from ._worker_thread import log, may_block

if TYPE_CHECKING:
    from ._worker import Worker

RETRY_FIRST_S: Final = 1.0
"""First delay until a failed read is repeated; it doubles."""

RETRY_MAX_S: Final = 60.0
"""Longest delay until a failed read is repeated."""

RETRY_JITTER: Final = 0.3
"""A delay varies at random by this part of it, in both directions."""


class ConfigurationOptions(TypedDict, total=False):
    """
    How a configuration is described when it is registered.

    ``schema``: JSON Schema of the value. ``initial_value``: if it has none yet. ``name``,
    ``description``, ``metadata``: for listings.
    """

    schema: Any
    initial_value: Any
    name: str
    description: str
    metadata: Any


class _Read(NamedTuple):
    value: Any
    version: int
    revision: int
    """How many values there were before."""


class LiveConfiguration:
    """
    A configuration whose `value` is always the present one. Made by `Worker.configuration`.

    As a context manager it is closed at the end of the block; the end of the worker closes it too.

    Attributes:
        id: Its id.
        error: Why the value may be out of date; None: it is current.

    """

    def __init__(
        self,
        worker: Worker,
        post: Callable[[Work], None],
        id: str,  # noqa: A002 - the name on the wire
        described: dict[str, Any],
        on_error: Callable[[EngineError], object] | None,
    ) -> None:
        self.id = check_id(id, "id of a configuration")
        if on_error is not None and not callable(on_error):
            raise invalid(f"on_error must be callable, not {type(on_error).__name__}")
        self.error: EngineError | None = None
        self._worker = worker
        self._post = post
        self._described = {key: value for key, value in described.items() if value is not None}
        self._on_error = on_error
        self._current: _Read | None = None
        self._first: Future[None] = Future()
        """The outcome of the first read."""
        self._changed_or_closed = threading.Condition()
        self._is_closed = False
        self._listeners: list[Callable[[Any], object]] = []
        self._waiters: list[tuple[Mailbox, asyncio.Future[None]]] = []
        """Coroutines that wait for a change; the condition is held."""
        self._registration: Registration | None = None
        self._stop_listening: Callable[[], None] | None = None
        # The rest is used in the worker's thread only.
        self._reading: asyncio.Task[None] | None = None
        self._is_stale = False
        """Something happened since the read under way began."""
        self._retry: asyncio.TimerHandle | None = None
        self._retry_s: float | None = None

    @property
    def value(self) -> Any:
        """
        The value, references expanded and secrets in plain text: the last one that could be read.

        Another change makes another value; this one is never changed.
        """
        return self._now().value

    @property
    def version(self) -> int:
        """How often it was set, from 1 on."""
        return self._now().version

    def on_change(self, listener: Callable[[Any], object]) -> Callable[[], None]:
        """
        Listen to the values that follow.

        Args:
            listener: Gets each, in the worker's own thread; it must not block.

        Returns:
            A function that removes the listener.

        """
        if not callable(listener):
            raise invalid(f"A listener must be callable, not {type(listener).__name__}")
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def changes(self) -> Iterator[Any]:
        """
        Iterate over the values that follow, each once, until it is closed.

        A program that is slower than the changes gets the latest one only.

        Returns:
            An iterator whose ``next`` waits.

        Raises:
            EngineError: ``INVALID_ARGUMENTS`` in a coroutine on the worker's loop.

        Example:
            for mail in configuration.changes():
                print(mail["port"])

        """
        return self._follow(self._now().revision)

    def changes_async(self) -> AsyncIterator[Any]:
        """Iterate over the values that follow, as `changes`, in a coroutine."""
        return self._follow_async(self._now().revision)

    def close(self) -> None:
        """Stop to follow; the value stays as it is. Nothing the second time."""
        with self._changed_or_closed:
            if self._is_closed:
                return
            self._is_closed = True
            self._wake()
        if self._stop_listening is not None:
            self._stop_listening()
        if self._registration is not None:
            self._registration.unregister()
        self._listeners.clear()
        self._post(self._cancel_retry)

    def __enter__(self) -> LiveConfiguration:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Read it for the first time; for `Worker.configuration`."""
        if self._described:
            self._worker.trigger(self._register_request())
        self._begin()
        try:
            with may_block("configuration()", "configuration_async(...)"):
                self._first.result()
        except BaseException:
            self.close()
            raise

    async def open_async(self) -> None:
        """Read it for the first time; for `Worker.configuration_async`."""
        if self._described:
            await self._worker.trigger_async(self._register_request())
        self._begin()
        try:
            await asyncio.wrap_future(self._first)
        except BaseException:
            self.close()
            raise

    def _now(self) -> _Read:
        assert self._current is not None, "used before it was opened"
        return self._current

    def _register_request(self) -> TriggerRequest:
        payload = {"id": self.id, **self._described}
        return {"function_id": "configuration::register", "payload": payload}

    def _begin(self) -> None:
        """Follow events, then read: no change is missed."""
        worker = self._worker
        function_id = f"configuration-changed::{uuid.uuid4()}"

        async def changed(_event: Any) -> None:
            self._changed()

        called = worker.register_function(
            function_id,
            changed,
            description=f"Changes of configuration {self.id}",
            metadata={"internal": True},
        )
        config = {"configuration_id": self.id}
        trigger = worker.register_trigger(
            {"type": "configuration", "function_id": function_id, "config": config}
        )
        self._registration = together(trigger.id, trigger, called)
        self._stop_listening = worker.on_connection_state(self._connection)
        self._post(self._changed)

    def _connection(self, state: ConnectionState) -> None:
        if state == "connected":
            self._changed()
        elif state in ("disconnected", "failed"):
            self.close()

    def _changed(self) -> None:
        """Read the value, after the read that is under way; in the worker's thread."""
        self._is_stale = True
        if self._reading is not None or self._is_closed:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # The worker has ended.
            self._fail(_ended())
            return
        # Outside of the invocation whose handler may be running, and of its deadline.
        self._reading = Context().run(loop.create_task, self._read())

    async def _read(self) -> None:
        self._cancel_retry()
        try:
            while self._is_stale and not self._is_closed:
                self._is_stale = False
                try:
                    self._take(await self._get())
                except EngineError as error:
                    self._fail(error)
        finally:
            self._reading = None
            if not self._first.done():  # The loop ends.
                self._fail(_ended())
        if self.error is not None and self._current is not None and not self._is_closed:
            delay = RETRY_FIRST_S if self._retry_s is None else self._retry_s
            self._retry_s = min(2 * delay, RETRY_MAX_S)
            delay *= 1 + RETRY_JITTER * random.uniform(-1, 1)
            self._retry = asyncio.get_running_loop().call_later(delay, self._changed)

    async def _get(self) -> Any:
        request: TriggerRequest = {
            "function_id": "configuration::get",
            "payload": {"id": self.id},
        }
        try:
            return await self._worker.trigger_async(request)
        except EngineError as error:
            # The state of the engine was replaced, for example.
            if error.code != "NOT_REGISTERED" or not self._described:
                raise
            await self._worker.trigger_async(self._register_request())
            return await self._worker.trigger_async(request)

    def _take(self, read: Any) -> None:
        value, version, before = read["value"], read["version"], self._current
        self.error = None
        self._retry_s = None
        if before is not None and _text(before.value) == _text(value):
            self._current = before._replace(version=version)
            return
        with self._changed_or_closed:
            self._current = _Read(value, version, 0 if before is None else before.revision + 1)
            self._wake()
        if before is None:
            if not self._first.done():  # The caller may have given up.
                self._first.set_result(None)
            return
        for listener in list(self._listeners):
            try:
                listener(value)
            except Exception:
                log.exception("[engine] A listener for changes of %s failed", self.id)

    def _fail(self, error: EngineError) -> None:
        is_new = self.error is None or str(self.error) != str(error)
        self.error = error
        if self._current is None:
            if not self._first.done():
                self._first.set_exception(error)
            return
        if not is_new or self._is_closed:
            return
        if self._on_error is None:
            log.error("[engine] Configuration %s keeps its value: %s", self.id, error)
            return
        try:
            self._on_error(error)
        except Exception:
            log.exception("[engine] on_error of configuration %s failed", self.id)

    def _cancel_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _wake(self) -> None:
        """Wake all that wait; the condition is held."""
        self._changed_or_closed.notify_all()
        for mailbox, waiter in self._waiters:
            mailbox.put(partial(settle, waiter))
        self._waiters.clear()

    def _is_over(self, seen: int) -> bool:
        return self._is_closed or self._now().revision != seen

    def _follow(self, seen: int) -> Iterator[Any]:
        while True:
            with may_block("changes()", "changes_async()"), self._changed_or_closed:
                while not self._is_over(seen):
                    self._changed_or_closed.wait()
                now = self._now()
            if now.revision == seen:
                return
            seen = now.revision
            yield now.value

    async def _follow_async(self, seen: int) -> AsyncIterator[Any]:
        while True:
            with self._changed_or_closed:
                over = self._is_over(seen)
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                if not over:
                    self._waiters.append((running_loop_mailbox(), waiter))
            if not over:
                await waiter
            now = self._now()
            if now.revision == seen:
                return
            seen = now.revision
            yield now.value


def _ended() -> EngineError:
    return EngineError(SHUTDOWN["code"], SHUTDOWN["message"])


def _text(value: Any) -> str:
    """Return JSON by which changes are known: in Python 1, 1.0 and True are equal."""
    return json.dumps(value, sort_keys=True)
