"""`Worker`, the public face of the package; `_register.py` connects one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ._calls import Call, CallIds, LoopWaiter, ThreadWaiter, failure, plan_call
from ._channels import CREATE_CHANNEL, Channel, channel_of
from ._codec import TriggerInstance, announcement, check_registration, worker_name
from ._configuration import LiveConfiguration
from ._context import CURRENT
from ._errors import EngineError
from ._process import PROCESS
from ._reconnect import ConnectionState
from ._registrations import (
    Registration,
    TriggerHandler,
    plan_trigger,
    plan_trigger_type,
    together,
)
from ._requests import (
    HttpInvocation,
    InitOptions,
    TriggerInput,
    TriggerRequest,
    TriggerTypeInput,
    check_id,
    enqueue_request,
)
from ._session import UNREACHABLE
from ._state_watch import StateWatch
from ._streams import Stream, StreamSource, create_stream
from ._telemetry import telemetry_dial
from ._threads import ThreadPool
from ._transport import (
    ENGINE_URL_DEFAULT,
    LEAVE_MS,
    Dial,
    WebSocketDial,
    read_url,
    redacted_url,
)
from ._typed import plan_function
from ._worker_thread import WorkerThread, log, may_block, now_ms

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._configuration import ConfigurationOptions
    from ._requests import EnqueueOptions

REGISTER_WAIT_MS: Final = 30_000
"""How long ``register_worker`` waits for the connection before it returns without."""


class Worker:
    """
    A connected worker, created by `register_worker`; every method is thread-safe.

    As a context manager it shuts down at the end of the block.
    """

    def __init__(
        self,
        url: str | None,
        options: InitOptions,
        dial: Dial | None = None,
        telemetry: Dial | None = None,
    ) -> None:
        address = read_url(url or os.environ.get("ENGINE_URL") or ENGINE_URL_DEFAULT)
        self.name = worker_name(options.worker_name)
        """Shown in lists; need not be unique."""
        who = announcement(self.name, options.description, options.namespace)
        self._options = options
        self._ids = CallIds()
        self._address = redacted_url(address)
        self._thread = WorkerThread(
            who,
            dial or WebSocketDial(address, options.token, options.headers),
            self._address,
            options.reconnect,
            ThreadPool(options.max_threads),
            self.name,
            telemetry_dial(address, options) if dial is None else telemetry,
            options.when_disconnected,
            address,
        )
        self.telemetry = self._thread.telemetry
        """For `Logger`; None: its lines are sent as calls."""

    @property
    def connection_state(self) -> ConnectionState:
        """State of the connection."""
        return self._thread.state

    def on_connection_state(
        self, listener: Callable[[ConnectionState], object]
    ) -> Callable[[], None]:
        """
        Listen to changes of the connection state.

        Args:
            listener: Gets each new state, in the worker's own thread; it must not block.

        Returns:
            A function that removes the listener.

        """
        listeners = self._thread.listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    def register_function(
        self,
        id: str,  # noqa: A002 - the name on the wire
        handler: Callable[..., Any] | HttpInvocation,
        *,
        description: str | None = None,
        request_format: Any = None,
        response_format: Any = None,
        metadata: Any = None,
        namespace: str | None = None,
        queue: Mapping[str, Any] | None = None,
        check_types: bool = True,
    ) -> Registration:
        """
        Register a function; the same id again replaces it.

        Args:
            id: ``group::name``, such as ``"math::add"``.
            handler: Takes ``(payload)``, ``(payload, metadata)`` or ``(payload, metadata,
                context)`` and returns any JSON value; ``None``: no result. A coroutine
                function runs on the worker's loop and must not block; any other runs in a
                thread, several concurrently. The caller gets what it raises. Or a dict with
                the ``url`` of a service, which the engine requests with the payload; its
                configuration (``engine.http_functions``) has to allow the host.
            description: Shown in lists; else the first paragraph of the handler's docstring.
            request_format: JSON Schema of the payload; the engine checks calls against it. Else
                made from the type hint of the payload.
            response_format: JSON Schema of the result; reported. Else made from the type hint.
            metadata: Any JSON value, shown in lists.
            namespace: Left out: the default one.
            queue: Declares a queue for the function, which ``engine-queue`` provides: ``name``
                (the id of the function), ``max_retries`` (attempts in all, 3), ``concurrency``
                (10), ``concurrency_per_worker``, ``type`` (``"standard"`` or ``"fifo"`` with
                ``message_group_field``), ``backoff_ms`` (1000), ``backoff_max_ms``, ``jitter``,
                ``timeout_ms``, ``rate``, ``expires_ms``. A refusal is logged.
            check_types: Convert and check payload and result by the handler's type hints:
                dataclasses, TypedDicts, pydantic models and what JSON has. A payload that does
                not fit fails with ``invalid_payload``, a result with ``invalid_result``.

        Returns:
            The registration, for unregistering.

        Raises:
            EngineError: ``INVALID_ARGUMENTS`` when the handler's signature does not fit,
                ``serialization_error`` when JSON cannot represent a format.

        Example:
            worker.register_function("math::add", lambda payload: payload["a"] + payload["b"])
            worker.register_function("web::quote", {"url": "https://api.example.com/quote"})

        """
        function = plan_function(
            id,
            handler,
            description=description,
            request_format=request_format,
            response_format=response_format,
            metadata=metadata,
            namespace=namespace,
            check_types=check_types,
        )
        check_registration(function.encode(), id)
        session, post = self._thread.session, self._thread.post
        post(lambda: session.add_function(function))
        called = Registration(id, lambda: post(lambda: session.remove_function(function)))
        if queue is None:
            return called
        declared: TriggerInput = {"type": "queue", "function_id": id, "config": dict(queue)}
        if namespace is not None:
            declared["namespace"] = namespace
        return together(id, self.register_trigger(declared), called)

    def register_trigger(self, trigger: TriggerInput) -> Registration:
        """
        Register a trigger, which calls a function when an event of its type occurs.

        Args:
            trigger: ``type``, ``function_id``, and the type's configuration in ``config``.
                The function and the type need not exist yet. A refusal is logged.

        Returns:
            The registration, for unregistering.

        Raises:
            EngineError: ``INVALID_ARGUMENTS`` when a key is missing or unknown,
                ``serialization_error`` when JSON cannot represent the config.

        Example:
            worker.register_trigger({
                "type": "http",
                "function_id": "math::add",
                "config": {"api_path": "/add", "http_method": "POST"},
            })

        """
        planned = plan_trigger(trigger, str(uuid.uuid4()))
        check_registration(planned.encode(), planned.id)
        session, post = self._thread.session, self._thread.post
        post(lambda: session.add_trigger(planned))
        return Registration(planned.id, lambda: post(lambda: session.remove_trigger(planned)))

    def register_trigger_type(
        self,
        trigger_type: TriggerTypeInput,
        handler: TriggerHandler | Callable[[TriggerInstance], Any],
        unregister: Callable[[TriggerInstance], Any] | None = None,
    ) -> Registration:
        """
        Register a trigger type: this worker calls functions when its events occur.

        Args:
            trigger_type: ``id``, ``description``, and JSON Schemas in
                ``trigger_request_format`` and ``call_request_format``.
            handler: An object with ``register_trigger`` and ``unregister_trigger``; or the
                first of these as a callable.
            unregister: The second of these, if ``handler`` is the first.

        Returns:
            The registration, for unregistering.

        Raises:
            EngineError: ``INVALID_ARGUMENTS`` when a key is missing or unknown or a handler
                cannot be called, ``serialization_error`` when JSON cannot represent a format.

        Example:
            worker.register_trigger_type(
                {"id": "file-watch", "description": "A file changed"}, watch, unwatch
            )

        """
        planned = plan_trigger_type(trigger_type, handler, unregister)
        check_registration(planned.encode(), planned.id)
        session, post = self._thread.session, self._thread.post
        post(lambda: session.add_type(planned))
        return Registration(planned.id, lambda: post(lambda: session.remove_type(planned)))

    def trigger(self, request: TriggerRequest) -> Any:
        """
        Call a function of any worker and wait for its result.

        Args:
            request: ``function_id`` such as ``"math::add"``; ``payload``, anything JSON can
                hold; ``timeout_ms``, 30,000 if left out, and never more than what the handler
                that calls has left; ``action``; ``metadata``; ``namespace``; ``on_progress``,
                called in this thread with each progress value.

        Returns:
            What the function returned; ``None`` if it returned nothing.

        Raises:
            InvocationError: ``function_not_found``, ``invocation_stopped``, ``TIMEOUT``,
                ``SHUTDOWN``, or the code that the function itself failed with; without a
                connection ``overloaded`` or ``engine_unreachable``, see ``when_disconnected``.
            EngineError: ``INVALID_ARGUMENTS`` for an invalid request, and in a coroutine on
                the worker's loop, which must not block.

        Example:
            worker.trigger({"function_id": "math::add", "payload": {"a": 2, "b": 3}})

        """
        context = CURRENT.get()
        call = plan_call(request, self._options.timeout_ms, context, now_ms(), self._ids)
        if call.invocation_id is None:
            self._start(call)
            return None
        blocking = may_block("trigger()", "trigger_async(...)")
        answer = ThreadWaiter(call, request.get("on_progress"))
        unwatch = None if context is None else context.watch(lambda: self._cancel(call))
        try:
            with blocking:
                if not ((direct := self._thread.direct) and direct.exchange(call)):
                    self._start(call)
                return answer.wait(now_ms)
        except BaseException:
            self._cancel(call)  # No effect on a call that has ended.
            raise
        finally:
            if unwatch is not None:
                unwatch()

    async def trigger_async(self, request: TriggerRequest) -> Any:
        """
        Call a function of any worker; on the worker's loop or on any other.

        Cancelling the awaiting task cancels the call.

        Args:
            request: As for `trigger`.

        Returns:
            What the function returned; ``None`` if it returned nothing.

        Raises:
            InvocationError: ``function_not_found``, ``invocation_stopped``, ``TIMEOUT``,
                ``SHUTDOWN``, or the code that the function itself failed with.

        Example:
            await worker.trigger_async({"function_id": "math::add", "payload": {"a": 2}})

        """
        context = CURRENT.get()
        call = plan_call(request, self._options.timeout_ms, context, now_ms(), self._ids)
        if call.invocation_id is None:
            self._start(call)
            return None
        answer = LoopWaiter(call, request.get("on_progress"))
        self._start(call)
        try:
            return await answer.wait()
        except BaseException:
            self._cancel(call)
            raise

    def enqueue(
        self,
        function_id: str,
        payload: Any = None,
        queue: str = "default",
        namespace: str | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Any:
        """
        Put a call into a queue, which makes it later, at least once.

        Args:
            function_id: Such as ``"mail::send"``.
            payload: Anything JSON can hold.
            queue: Name of the queue.
            namespace: Of the function.
            **options: ``id``, ``delay_ms``, ``run_at_ms``, ``priority``, ``expires_ms``,
                ``timeout_ms``, ``keep_result_ms``; see `EnqueueOptions`.

        Returns:
            ``{"messageReceiptId": …}``, when the job is on disk.

        Raises:
            InvocationError: ``enqueue_error``, ``deserialization_error`` for a bad option, or as
                `trigger`.
            EngineError: As `trigger`.

        Example:
            worker.enqueue("mail::send", {"to": "a@b.c"}, queue="mail", delay_ms=60_000)

        """
        return self.trigger(enqueue_request(function_id, payload, queue, namespace, options))

    async def enqueue_async(
        self,
        function_id: str,
        payload: Any = None,
        queue: str = "default",
        namespace: str | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Any:
        """Put a call into a queue; as `enqueue`, on the worker's loop or on any other."""
        request = enqueue_request(function_id, payload, queue, namespace, options)
        return await self.trigger_async(request)

    def publish(self, topic: str, data: Any = None) -> None:
        """
        Publish a message to all functions that are subscribed to a topic, at most once.

        Returns when the engine has accepted the message, before it is delivered. The built-in
        worker ``engine-pubsub`` provides it.

        Args:
            topic: Such as ``"orders.created"``; without ``*`` and ``>``.
            data: Any JSON value.

        Raises:
            InvocationError: As for `trigger`: ``function_not_found`` without ``engine-pubsub``,
                ``overloaded``, ``topic_not_set``, ``VALUE_TOO_LARGE``, ``deserialization_error``
                for a topic that is too long or has a wildcard.

        Example:
            worker.publish("orders.created", {"id": 7})

        """
        self.trigger(_message(topic, data))

    async def publish_async(self, topic: str, data: Any = None) -> None:
        """Publish a message, as `publish`."""
        await self.trigger_async(_message(topic, data))

    def subscribe(self, topic: str, handler: Callable[..., Any]) -> Registration:
        """
        Call a handler with each message of a topic, until it is unregistered.

        Every worker that subscribes gets every message; for replicas that share them, register a
        function and a trigger of type ``subscribe`` instead. A refusal of the topic is logged.

        Args:
            topic: A topic, or a pattern: ``*`` stands for one part, ``>`` at the end for one or
                more.
            handler: Takes the published data, as the handler of a function; its result is
                ignored.

        Returns:
            The registration, for unregistering.

        Raises:
            EngineError: ``INVALID_ARGUMENTS`` for an invalid topic or handler.

        Example:
            worker.subscribe("orders.*", lambda order: print(order["id"]))

        """
        function_id = f"subscription::{uuid.uuid4()}"
        function = self.register_function(
            function_id,
            handler,
            description=f"Messages of {check_id(topic, 'topic')}",
            metadata={"internal": True},
        )
        trigger = self.register_trigger(
            {"type": "subscribe", "function_id": function_id, "config": {"topic": topic}}
        )
        return together(trigger.id, trigger, function)

    def stream(self, name: str) -> Stream:
        """
        Return a stream of ``engine-stream``, to read, write and follow items; sends nothing.

        Raises:
            EngineError: ``INVALID_ARGUMENTS`` for an empty name.

        Example:
            worker.stream("chat").group("room-1").set("m1", {"text": "hi"})

        """
        return Stream(self, name)

    def create_stream(self, name: str, source: StreamSource) -> Registration:
        """
        Keep the items of a stream in this worker, in place of the engine.

        Registers the functions ``stream::get(<name>)``, ``set``, ``delete``, ``list``,
        ``list_groups``, and ``update`` if the source has it.

        Args:
            name: Such as ``"users"``.
            source: An object with these methods.

        Returns:
            The registration, for unregistering.

        Raises:
            EngineError: ``INVALID_ARGUMENTS`` when a method is missing or does not fit.

        """
        return create_stream(self, name, source)

    def configuration(
        self,
        id: str,  # noqa: A002 - the name on the wire
        *,
        on_error: Callable[[EngineError], object] | None = None,
        **described: Unpack[ConfigurationOptions],
    ) -> LiveConfiguration:
        """
        Follow a value of ``engine-configuration``: it is read again when it changes.

        Args:
            id: Such as ``"mail"``.
            on_error: Gets what a later read fails with, in the worker's own thread; the value
                stays as it is. If left out, it is logged.
            **described: ``schema``, ``initial_value``, ``name``, ``description``, ``metadata``:
                with any of them it is registered first; a value that it has stays.

        Returns:
            The configuration, whose ``value`` is always the present one.

        Raises:
            InvocationError: As for `trigger`: ``NOT_REGISTERED``; ``NOT_FOUND`` without a value;
                ``SCHEMA_INVALID``; ``EXPAND_FAILED``; ``function_not_found``.
            EngineError: As for `trigger`.

        Example:
            mail = worker.configuration("mail", initial_value={"port": 25})
            print(mail.value["port"])

        """
        live = LiveConfiguration(self, self._thread.post, id, {**described}, on_error)
        live.open()
        return live

    async def configuration_async(
        self,
        id: str,  # noqa: A002
        *,
        on_error: Callable[[EngineError], object] | None = None,
        **described: Unpack[ConfigurationOptions],
    ) -> LiveConfiguration:
        """Follow a value, as `configuration`, on the worker's loop or on any other."""
        live = LiveConfiguration(self, self._thread.post, id, {**described}, on_error)
        await live.open_async()
        return live

    def watch_state(self, scope: str, key: str | None = None) -> StateWatch:
        """
        Follow entries of the state, or one: first as they are, then each that changed.

        See `StateWatch`. Raises EngineError ``INVALID_ARGUMENTS``.
        """
        return StateWatch(self, scope, key)

    def create_channel(self, buffer_frames: int | None = None) -> Channel:
        """
        Create a channel: a stream of bytes and text messages between any two workers.

        Its ends travel inside payloads. The engine forwards what is written and holds the writer
        back while the reader is slow. An end that never connects ends the channel after 5 min.

        Args:
            buffer_frames: Messages that the engine holds before the reader connects, from 1 to
                1,024, of 256 KiB in all; 64 if left out.

        Returns:
            Both ends.

        Raises:
            InvocationError: As for `trigger`; ``overloaded`` if this worker has 1,000 channels.

        Example:
            channel = worker.create_channel()
            worker.trigger({"function_id": "a::b", "payload": {"file": channel.reader}})

        """
        return channel_of(self._thread.channels, self.trigger(_creation(buffer_frames)))

    async def create_channel_async(self, buffer_frames: int | None = None) -> Channel:
        """Create a channel, as `create_channel`."""
        return channel_of(self._thread.channels, await self.trigger_async(_creation(buffer_frames)))

    def shutdown(self) -> None:
        """Write what is queued, fail pending calls with ``SHUTDOWN``, close the connection."""
        PROCESS.remove(self)
        self._thread.stop()
        self._thread.join_or_warn(4 * LEAVE_MS / 1000)

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs, which keeps the process alive."""
        return self._thread.is_alive()

    def leave(self) -> None:
        """Begin to shut down, without blocking; safe in a signal handler."""
        self._thread.stop()

    def end_with_process(self) -> None:
        """Keep the process from waiting for the worker; before `start`."""
        self._thread.daemon = True

    def start(self) -> None:
        """Dial, and wait up to `REGISTER_WAIT_MS` for the connection; for `register_worker`."""
        self._thread.start()
        if not self._thread.settled.wait(REGISTER_WAIT_MS / 1000):
            log.warning("[engine] No engine at %s yet; continuing without", self._address)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _start(self, call: Call) -> None:
        if call.settle is None and (ended := self._thread.ended) is not None:
            raise failure(call, ended)  # A void call has no other way to fail.
        if self._thread.fails_fast and self._thread.state == "reconnecting":
            raise failure(call, UNREACHABLE)
        self._thread.post(lambda: self._thread.start_call(call))

    def _cancel(self, call: Call) -> None:
        self._thread.post(lambda: self._thread.session.cancel_call(call))


def _message(topic: str, data: Any) -> TriggerRequest:
    return {"function_id": "publish", "payload": {"topic": topic, "data": data}}


def _creation(buffer_frames: int | None) -> TriggerRequest:
    payload = {} if buffer_frames is None else {"buffer_size": buffer_frames}
    return {"function_id": CREATE_CHANNEL, "payload": payload}
