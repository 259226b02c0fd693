"""Registering triggers and trigger types: what users hand in, checked, and what they get back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ._errors import invalid
from ._messages import TriggerInstance
from ._offers import Trigger, TriggerType, encode_if
from ._requests import TriggerInput, TriggerTypeInput, check_id, check_keys, check_namespace


class Registration:
    """
    Something a worker has registered.

    Attributes:
        id: Its id; that of a trigger was made up.

    """

    def __init__(self, id_: str, unregister: Callable[[], None]) -> None:
        self.id = id_
        self._unregister = unregister

    def unregister(self) -> None:
        """Take it back; once more does nothing."""
        self._unregister()


class TriggerHandler(Protocol):
    """Serves a trigger type; both methods may also be coroutine functions."""

    def register_trigger(self, trigger: TriggerInstance) -> Any:
        """Start a trigger; what this raises is told to whoever asked for the trigger."""

    def unregister_trigger(self, trigger: TriggerInstance) -> Any:
        """End a trigger, found by its ``id`` alone."""


def plan_trigger(trigger: TriggerInput, id_: str) -> Trigger:
    """
    Check a trigger and encode its parts.

    Raises:
        EngineError: ``INVALID_ARGUMENTS`` when a key is missing or unknown,
            ``serialization_error`` when JSON cannot hold a part.

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
            be called, ``serialization_error`` when JSON cannot hold a format.

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
