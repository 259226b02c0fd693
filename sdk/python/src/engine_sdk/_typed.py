"""
Functions to register, with the types that their handlers are annotated with.

The hint of the payload and that of the result become ``request_format`` and ``response_format``,
and the handler gets payloads that fit only. The worker checks, although the engine does it too:
the engine checks no firings of triggers, and a dataclass has to be made anyway.
"""

from __future__ import annotations

import inspect
import logging
import types
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ._context import CallContext
from ._errors import EngineError
from ._handlers import Bound, bind
from ._registrations import Function, encode_if, not_invokable
from ._requests import HttpInvocation, check_id, check_invocation, check_namespace
from ._shapes import ANYTHING, Faults, Shape, shape_of, summary

log = logging.getLogger("engine_sdk")


@dataclass(frozen=True)
class HandlerTypes:
    """What the annotations of a handler say."""

    request: Shape = ANYTHING
    response: Shape = ANYTHING
    summary: str | None = None
    """The first paragraph of its docstring."""


UNTYPED: Final = HandlerTypes()


def plan_function(
    id_: str,
    handler: Callable[..., Any] | HttpInvocation,
    *,
    description: str | None,
    request_format: Any,
    response_format: Any,
    metadata: Any,
    namespace: str | None,
    check_types: bool,
) -> Function:
    """
    Check a function and encode its parts.

    Raises:
        EngineError: ``INVALID_ARGUMENTS``, ``serialization_error``.

    """
    check_id(id_, "id of a function")
    invocation: HttpInvocation | None = None
    if isinstance(handler, Mapping):
        check_invocation(handler, id_)
        invocation, handler = handler, not_invokable(id_)
    call, is_async = bind(handler, id_)
    hints = types_of(handler, id_) if check_types and invocation is None else UNTYPED
    if request_format is None:
        request_format = hints.request.schema or None
    if response_format is None:
        response_format = hints.response.schema or None
    return Function(
        id=id_,
        call=_checked(call, is_async, id_, hints),
        is_async=is_async,
        namespace=check_namespace(namespace),
        description=hints.summary if description is None else description,
        request_format=encode_if(request_format, f"request_format of {id_}"),
        response_format=encode_if(response_format, f"response_format of {id_}"),
        metadata=encode_if(metadata, f"metadata of {id_}"),
        invocation=encode_if(invocation, f"URL of {id_}"),
    )


def types_of(handler: Callable[..., Any], id_: str) -> HandlerTypes:
    """Read the annotations of a handler; what cannot be read is logged and accepts all."""
    function: Any = inspect.unwrap(handler)
    if not isinstance(function, (types.FunctionType, types.MethodType)):
        function = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself
        if not isinstance(function, types.FunctionType) or isinstance(handler, type):
            return UNTYPED
        first = 1
    else:
        first = 1 if isinstance(function, types.MethodType) else 0
    plain = getattr(function, "__func__", function)
    names = plain.__code__.co_varnames[: plain.__code__.co_argcount]
    text = plain.__doc__
    return HandlerTypes(
        request=_read(plain, names[first] if len(names) > first else None, id_),
        response=_read(plain, "return", id_),
        summary=summary(text) if text and text.strip() else None,
    )


def _read(function: types.FunctionType, name: str | None, id_: str) -> Shape:
    """Read one annotation by itself, so that others may be unreadable."""
    try:
        annotations = function.__annotations__
        if name is None or name not in annotations:
            return ANYTHING
        alone = types.SimpleNamespace(__annotations__={name: annotations[name]})
        hints = typing.get_type_hints(alone, globalns=function.__globals__, include_extras=True)
        return shape_of(hints[name])
    except Exception as error:
        what = "result" if name == "return" else "payload"
        log.warning(
            "[engine] The type of the %s of %s is not checked: %s; "
            "import it at the top of the module, or register with check_types=False",
            *(what, id_, error),
        )
        return ANYTHING


def _checked(call: Bound, is_async: bool, id_: str, hints: HandlerTypes) -> Bound:
    """Return the handler with checks of its payload and its result, if they have types."""
    request, response = hints.request, hints.response
    if request.accepts_all and response.accepts_all:
        return call

    def load(payload: Any) -> Any:
        return _fit(request, payload, "in", "invalid_payload", f"Payload of {id_}")

    def dump(result: Any) -> Any:
        return _fit(response, result, "out", "invalid_result", f"Result of {id_}")

    async def finish(result: Awaitable[Any]) -> Any:
        return dump(await result)

    async def run_async(payload: Any, metadata: Any, context: CallContext) -> Any:
        return dump(await call(load(payload), metadata, context))

    def run(payload: Any, metadata: Any, context: CallContext) -> Any:
        result = call(load(payload), metadata, context)
        return finish(result) if inspect.isawaitable(result) else dump(result)

    return run_async if is_async else run


def _fit(
    shape: Shape,
    value: Any,
    direction: Literal["in", "out"],
    code: str,
    what: str,
) -> Any:
    faults = Faults()
    converted = shape.convert(value, "", faults, direction)
    if not faults:
        return converted
    first = " ".join(part for part in faults[0] if part)
    errors = [{"path": path, "message": message} for path, message in faults]
    raise EngineError(code, f"{what} does not fit its type: {first}", {"errors": errors})
