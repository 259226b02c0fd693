"""What a worker offers and asks for: functions, trigger types, triggers, and their frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._codec import encode, frame, quote


@dataclass(eq=False, frozen=True)
class Function:
    """A function on offer; `call` is the handler, taking what `_handlers` hands it."""

    id: str
    call: Callable[..., Any]
    is_async: bool
    namespace: str | None
    description: str | None
    request_format: str | None
    response_format: str | None
    metadata: str | None

    def encode(self) -> str:
        """Make the frame that offers it."""
        return frame(
            "registerfunction",
            id=quote(self.id),
            namespace=quote_if(self.namespace),
            description=quote_if(self.description),
            request_format=self.request_format,
            response_format=self.response_format,
            metadata=self.metadata,
        )

    def encode_end(self) -> str:
        """Make the frame that takes it back."""
        namespace = quote_if(self.namespace)
        return frame("unregisterfunction", id=quote(self.id), namespace=namespace)


@dataclass(eq=False, frozen=True)
class TriggerType:
    """A trigger type on offer; the two handlers may be coroutine functions."""

    id: str
    description: str
    start: Callable[[Any], Any]
    stop: Callable[[Any], Any]
    trigger_request_format: str | None
    call_request_format: str | None
    namespace: str | None

    def encode(self) -> str:
        """Make the frame that offers it."""
        return frame(
            "registertriggertype",
            id=quote(self.id),
            namespace=quote_if(self.namespace),
            description=quote(self.description),
            trigger_request_format=self.trigger_request_format,
            call_request_format=self.call_request_format,
        )

    def encode_end(self) -> str:
        """Make the frame that takes it back."""
        namespace = quote_if(self.namespace)
        return frame("unregistertriggertype", id=quote(self.id), namespace=namespace)


@dataclass(eq=False)
class Trigger:
    """A trigger this worker asked for; `sent` once the engine may know it."""

    id: str
    trigger_type: str
    function_id: str
    config: str | None
    metadata: str | None
    namespace: str | None
    trigger_namespace: str | None
    sent: bool = False

    def encode(self) -> str:
        """Make the frame that asks for it."""
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

    def encode_end(self) -> str:
        """Make the frame that ends it."""
        id_, type_ = quote(self.id), quote(self.trigger_type)
        return frame("unregistertrigger", id=id_, trigger_type=type_)


def quote_if(text: str | None) -> str | None:
    """Encode a text, if there is one."""
    return None if text is None else quote(text)


def encode_if(value: Any, what: str) -> str | None:
    """Encode a value, if there is one."""
    return None if value is None else encode(value, what)
