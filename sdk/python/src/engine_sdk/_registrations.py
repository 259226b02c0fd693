"""
What a worker registers: functions, trigger types and triggers, checked, and their frames.

`Registration` is what user code gets back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ._codec import TriggerInstance, encode, frame, quote
from ._errors import EngineError, invalid
from ._requests import TriggerInput, TriggerTypeInput, check_id, check_keys, check_namespace


@dataclass(eq=False, frozen=True)
class Function:
    """A registered function; `call` is the handler as `_handlers.bind` adapts it."""

    id: str
    call: Callable[..., Any]
    is_async: bool
    namespace: str | None
    description: str | None
    request_format: str | None
    response_format: str | None
    metadata: str | None
    invocation: str | None = None

    def encode(self) -> str:
        """Encode ``registerfunction``."""
        return frame(
            "registerfunction",
            id=quote(self.id),
            namespace=quote_if(self.namespace),
            description=quote_if(self.description),
            request_format=self.request_format,
            response_format=self.response_format,
            metadata=self.metadata,
            invocation=self.invocation,
        )

    def encode_unregister(self) -> str:
        """Encode ``unregisterfunction``."""
        namespace = quote_if(self.namespace)
        return frame("unregisterfunction", id=quote(self.id), namespace=namespace)


@dataclass(eq=False, frozen=True)
class TriggerType:
    """A registered trigger type; both handlers may be coroutine functions."""

    id: str
    description: str
    start: Callable[[Any], Any]
    stop: Callable[[Any], Any]
    trigger_request_format: str | None
    call_request_format: str | None
    namespace: str | None

    def encode(self) -> str:
        """Encode ``registertriggertype``."""
        return frame(
            "registertriggertype",
            id=quote(self.id),
            namespace=quote_if(self.namespace),
            description=quote(self.description),
            trigger_request_format=self.trigger_request_format,
            call_request_format=self.call_request_format,
        )

    def encode_unregister(self) -> str:
        """Encode ``unregistertriggertype``."""
        namespace = quote_if(self.namespace)
        return frame("unregistertriggertype", id=quote(self.id), namespace=namespace)


@dataclass(eq=False)
class Trigger:
    """A trigger of this worker; `sent` once the engine may have it."""

    id: str
    trigger_type: str
    function_id: str
    config: str | None
    metadata: str | None
    namespace: str | None
    trigger_namespace: str | None
    sent: bool = False

    def encode(self) -> str:
        """Encode ``registertrigger``."""
        return frame(
            "registertrigger",
            id=quote(self.id),
            trigger_type=quote(self.trigger_type),
            function_id=quote(self.function_id),
            namespace=quote_if(self.namespace),
            trigger_namespace=quote_if(self.trigger_namespace),
            metadata=self.metadata,
            config=self.config,
        )

    def encode_unregister(self) -> str:
        """Encode ``unregistertrigger``."""
        id_, type_ = quote(self.id), quote(self.trigger_type)
        return frame("unregistertrigger", id=id_, trigger_type=type_)


def not_invokable(id_: str) -> Callable[[Any], Any]:
    """Make the handler of a function with a URL, whose calls never come here."""

    def refuse(_payload: Any) -> Any:
        raise EngineError(
            "function_not_invokable", f"{id_} is served by its URL, not by its worker"
        )

    return refuse


def quote_if(text: str | None) -> str | None:
    """Encode a string, unless it is None."""
    return None if text is None else quote(text)


def encode_if(value: Any, what: str) -> str | None:
    """Encode a value, unless it is None."""
    return None if value is None else encode(value, what)


class Registration:
    """
    A registered function, trigger or trigger type.

    Attributes:
        id: Its id; that of a trigger is generated.

    """

    def __init__(self, id_: str, unregister: Callable[[], None]) -> None:
        self.id = id_
        self._unregister = unregister

    def unregister(self) -> None:
        """Unregister it; idempotent."""
        self._unregister()


def together(id_: str, *registrations: Registration) -> Registration:
    """Return several registrations as one; they end in this order."""

    def unregister() -> None:
        for each in registrations:
            each.unregister()

    return Registration(id_, unregister)


class TriggerHandler(Protocol):
    """Serves a trigger type; both methods may also be coroutine functions."""

    def register_trigger(self, trigger: TriggerInstance) -> Any:
        """Start a trigger; the worker that registered it gets what this raises."""

    def unregister_trigger(self, trigger: TriggerInstance) -> Any:
        """Stop a trigger, identified by its ``id`` alone."""


def plan_trigger(trigger: TriggerInput, id_: str) -> Trigger:
    """
    Check a trigger and encode its parts.

    Raises:
        EngineError: ``INVALID_ARGUMENTS`` when a key is missing or unknown,
            ``serialization_error`` when JSON cannot represent a part.

    """
    check_keys(trigger, TriggerInput, "trigger")
    type_ = check_id(trigger["type"], "type of a trigger")
    return Trigger(
        id=id_,
        trigger_type=type_,
        function_id=check_id(trigger["function_id"], "function_id"),
        config=encode_if(trigger.get("config"), f"config of the {type_} trigger"),
        metadata=encode_if(trigger.get("metadata"), f"metadata of the {type_} trigger"),
        namespace=check_namespace(trigger.get("namespace")),
        trigger_namespace=check_namespace(trigger.get("trigger_namespace")),
    )


def plan_trigger_type(
    given: TriggerTypeInput, handler: Any, unregister: Callable[[Any], Any] | None
) -> TriggerType:
    """
    Check a trigger type and find its two handlers.

    Raises:
        EngineError: ``INVALID_ARGUMENTS`` when a key is missing or unknown or a handler cannot
            be called, ``serialization_error`` when JSON cannot represent a format.

    """
    check_keys(given, TriggerTypeInput, "trigger type")
    id_ = check_id(given["id"], "id of a trigger type")
    start, stop = handler, unregister
    if unregister is None:
        start = getattr(handler, "register_trigger", None)
        stop = getattr(handler, "unregister_trigger", None)
    if not callable(start) or not callable(stop):
        raise invalid(
            f"Trigger type {id_} needs two callables, or an object with the methods "
            "register_trigger and unregister_trigger"
        )
    return TriggerType(
        id=id_,
        description=str(given["description"]),
        start=start,
        stop=stop,
        trigger_request_format=encode_if(given.get("trigger_request_format"), f"Format of {id_}"),
        call_request_format=encode_if(given.get("call_request_format"), f"Format of {id_}"),
        namespace=check_namespace(given.get("namespace")),
    )
