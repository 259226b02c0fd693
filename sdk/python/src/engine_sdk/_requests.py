"""The options and requests of user code, and their checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from ._errors import invalid

if TYPE_CHECKING:
    from typing_extensions import Unpack

CALL_TIMEOUT_MS: Final = 30_000
"""Timeout of a call that names none."""

TIMEOUT_MS_MAX: Final = 604_800_000
"""Longest timeout of a call: a week."""

ID_CHARS_MAX: Final = 1_024
"""Longest id of a function, a trigger or a type, in characters."""

RECONNECT_FIRST_MS: Final = 1_000
"""First delay before a worker dials again."""

RECONNECT_MAX_MS: Final = 1_800
"""
Longest delay before a worker dials again, its variation included: with the time for opening, at
most two seconds after the engine's return.
"""

THREADS_BUSY_MAX: Final = 32
"""Sync handlers that run concurrently, unless an option is set."""


class VoidAction(TypedDict):
    """Run the function without returning its result."""

    type: Literal["void"]


class EnqueueOptions(TypedDict, total=False):
    """
    How a queue keeps a job and begins it.

    ``id``: the same id again within a day is the same job. ``delay_ms`` or ``run_at_ms``: not
    before then. ``priority``: 0 to 255, higher ones begin first. ``expires_ms``: a job that has
    not begun by then is a dead letter. ``timeout_ms``: of one attempt. ``keep_result_ms``:
    ``engine::queue::result`` returns the result for so long.
    """

    id: str
    delay_ms: int
    run_at_ms: int
    priority: int
    expires_ms: int
    timeout_ms: int
    keep_result_ms: int


class _EnqueueActionRequired(TypedDict):
    type: Literal["enqueue"]
    queue: str


class EnqueueAction(_EnqueueActionRequired, EnqueueOptions, total=False):
    """Put the call into a queue; the result is a receipt."""


class TriggerAction:
    """
    The mode of a call that does not wait for its function (PROTOCOL 3.1).

    Example:
        >>> TriggerAction.Enqueue("mails")
        {'type': 'enqueue', 'queue': 'mails'}

    """

    @staticmethod
    def Void() -> VoidAction:  # noqa: N802 - the same name in every SDK
        """Run the function without returning its result."""
        return {"type": "void"}

    @staticmethod
    def Enqueue(queue: str, **options: Unpack[EnqueueOptions]) -> EnqueueAction:  # noqa: N802
        """Put the call into this queue; the result is ``{"messageReceiptId": …}``."""
        return {"type": "enqueue", "queue": queue, **options}


class _TriggerRequestRequired(TypedDict):
    function_id: str


class TriggerRequest(_TriggerRequestRequired, total=False):
    """A call: ``function_id`` such as ``"math::add"``; the other keys are optional."""

    payload: Any
    action: VoidAction | EnqueueAction | None
    timeout_ms: float | None
    metadata: Any
    namespace: str | None
    on_progress: Callable[[Any], object] | None


class CallOptions(TypedDict, total=False):
    """How a typed client makes a call: what `TriggerRequest` has beside function and payload."""

    timeout_ms: float | None
    metadata: Any
    on_progress: Callable[[Any], object] | None


def enqueue_request(
    function_id: str,
    payload: object,
    queue: str,
    namespace: str | None,
    options: EnqueueOptions,
) -> TriggerRequest:
    """Return the call that puts a call into a queue."""
    return {
        "function_id": function_id,
        "payload": payload,
        "namespace": namespace,
        "action": TriggerAction.Enqueue(queue, **options),
    }


class HmacAuth(TypedDict):
    """Sign time and body with HMAC-SHA256: ``x-engine-Signature``."""

    type: Literal["hmac"]
    secret_key: str


class BearerAuth(TypedDict):
    """Send ``Authorization: Bearer``."""

    type: Literal["bearer"]
    token_key: str


class ApiKeyAuth(TypedDict):
    """Send a header."""

    type: Literal["api_key"]
    header: str
    value_key: str


class _HttpInvocationRequired(TypedDict):
    url: str


class HttpInvocation(_HttpInvocationRequired, total=False):
    """
    How the engine requests a function whose implementation is a URL.

    ``method`` is POST, and ``timeout_ms`` 30,000, unless set. The ``*_key`` of ``auth`` name
    environment variables of the engine, not secrets.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    timeout_ms: int
    headers: Mapping[str, str]
    auth: HmacAuth | BearerAuth | ApiKeyAuth


class _TriggerInputRequired(TypedDict):
    type: str
    function_id: str


class TriggerInput(_TriggerInputRequired, total=False):
    """A trigger: its type defines ``config``; the function gets ``metadata``."""

    config: Any
    metadata: Any
    namespace: str | None
    trigger_namespace: str | None


class _TriggerTypeInputRequired(TypedDict):
    id: str
    description: str


class TriggerTypeInput(_TriggerTypeInputRequired, total=False):
    """A trigger type; the formats are JSON Schemas of ``config`` and of the payload."""

    trigger_request_format: Any
    call_request_format: Any
    namespace: str | None


@dataclass(frozen=True, kw_only=True)
class ReconnectOptions:
    """
    How to reconnect; a dial that is not answered does not postpone the next one.

    Attributes:
        first_ms: First delay; it doubles with every attempt, ± 30 %, so that many workers do
            not return at the same moment.
        max_ms: Longest delay, its variation included. With the default, a worker is connected
            at most two seconds after the engine has returned. A worker that access rules refuse
            waits up to 30 seconds.
        max_attempts: Failed attempts in a row until the state is ``"failed"``; None: unlimited.

    """

    first_ms: float = RECONNECT_FIRST_MS
    max_ms: float = RECONNECT_MAX_MS
    max_attempts: int | None = None


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """
    Name and behaviour of a worker.

    Attributes:
        worker_name: Shown in lists; else ``ENGINE_WORKER_NAME``, else ``<hostname>:<pid>``.
        description: Shown in lists.
        token: Sent as ``Authorization: Bearer`` with the upgrade.
        headers: Sent with the upgrade.
        namespace: Reported only; registrations have their own.
        timeout_ms: Timeout of calls that name none.
        reconnect: How to reconnect.
        when_disconnected: What a call does while there is no connection. ``"wait"``: it is sent
            with the next connection, if its timeout has not passed; at most 10,000 calls of
            64 MiB wait, further ones fail with ``overloaded``. ``"fail"``: it fails at once with
            ``engine_unreachable``, which is retryable; calls made while the worker connects for
            the first time wait for the outcome of the first attempt.
        max_threads: Sync handlers that run concurrently; one that waits for a call of its
            own does not count.
        telemetry: Send log lines, spans of handlers and gauges of the process to the engine,
            over a connection of their own; ``OTEL_ENABLED=false`` switches it off as well.
            Without it, log lines are sent as calls of ``engine::log::*``.

    Example:
        >>> InitOptions(worker_name="math").timeout_ms
        30000

    """

    worker_name: str | None = None
    description: str | None = None
    token: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    namespace: str | None = None
    timeout_ms: float = CALL_TIMEOUT_MS
    reconnect: ReconnectOptions = field(default_factory=ReconnectOptions)
    when_disconnected: Literal["wait", "fail"] = "wait"
    max_threads: int = THREADS_BUSY_MAX
    telemetry: bool = True

    def __post_init__(self) -> None:
        check_timeout(self.timeout_ms)
        if self.when_disconnected not in ("wait", "fail"):
            given = repr(self.when_disconnected)
            raise invalid(f"when_disconnected must be 'wait' or 'fail', not {given}")
        if self.max_threads < 1:
            raise invalid("max_threads must be at least 1")
        for name, value in self.headers.items():
            if any(mark in f"{name}{value}" for mark in "\r\n\0"):
                raise invalid(f"Header {name!r} must be one line")
        if self.token is not None and any(mark in self.token for mark in "\r\n\0"):
            raise invalid("token must be one line")


def check_id(value: object, what: str) -> str:
    """
    Check an id.

    Raises:
        EngineError: ``INVALID_ARGUMENTS``.

    """
    if not isinstance(value, str):
        raise invalid(f"{what} must be a string, such as 'math::add', not {type(value).__name__}")
    if not value or len(value) > ID_CHARS_MAX:
        raise invalid(f"{what} must have 1 to {ID_CHARS_MAX} characters")
    return value


def check_namespace(value: object) -> str | None:
    """
    Check a namespace; None means ``default``.

    Raises:
        EngineError: ``INVALID_ARGUMENTS``.

    """
    if value is None or (isinstance(value, str) and value):
        return value
    raise invalid(f"namespace must be a string, got {value!r}; leave it out for the default one")


def check_invocation(given: Mapping[str, Any], id_: str) -> None:
    """
    Check the URL of a function; the engine checks the rest, since it knows what it allows.

    Raises:
        EngineError: ``INVALID_ARGUMENTS``.

    """
    check_keys(given, HttpInvocation, f"URL of {id_}")
    url = given["url"]
    if not isinstance(url, str) or not url.lower().startswith(("https://", "http://")):
        example = "https://api.example.com/quote"
        raise invalid(f"url of {id_} must be an address such as {example}, not {url!r:.200}")
    if "timeout_ms" in given:
        check_timeout(given["timeout_ms"])


def check_keys(given: Mapping[str, Any], shape: type, what: str) -> None:
    """
    Check that a dict has the required keys of a TypedDict and no unknown ones.

    Raises:
        EngineError: ``INVALID_ARGUMENTS``.

    """
    if not isinstance(given, Mapping):
        raise invalid(f"{what} must be a dict, not {type(given).__name__}")
    required, known = _keys_of(shape)
    if required <= given.keys() <= known:
        return
    if missing := sorted(required - given.keys()):
        raise invalid(f"{what} lacks {', '.join(missing)}")
    if unknown := sorted(str(key) for key in given.keys() - known):
        raise invalid(f"{what} has no {', '.join(unknown)}; it knows {', '.join(sorted(known))}")


@cache
def _keys_of(shape: Any) -> tuple[frozenset[str], frozenset[str]]:
    required: frozenset[str] = shape.__required_keys__
    return required, required | shape.__optional_keys__


def check_timeout(value: object) -> float:
    """
    Check a timeout in milliseconds.

    Raises:
        EngineError: ``INVALID_ARGUMENTS``.

    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise invalid(f"timeout_ms must be a number, not {type(value).__name__}")
    if not math.isfinite(value) or not 0 < value <= TIMEOUT_MS_MAX:
        raise invalid(f"timeout_ms must be above 0 and at most {TIMEOUT_MS_MAX}, got {value}")
    return value


def _check_enqueue(action: Mapping[str, object]) -> None:
    """Check that an enqueue has no other options than there are; the engine ignores those."""
    known = EnqueueOptions.__annotations__
    unknown = [name for name in action if name not in {"type", "queue", *known}]
    if unknown:
        options = ", ".join(known)
        message = f"{unknown[0]!r} is not an option of an enqueued call"
        raise invalid(f"{message}; the options are {options}")


def check_action(action: object) -> str | None:
    """
    Check the action of a call.

    Returns:
        The type of the action; None for a plain call.

    Raises:
        EngineError: ``INVALID_ARGUMENTS``.

    """
    if action is None:
        return None
    if isinstance(action, Mapping):
        if action.get("type") == "void":
            return "void"
        if action.get("type") == "enqueue" and isinstance(action.get("queue"), str):
            _check_enqueue(action)
            return "enqueue"
    raise invalid("action must be TriggerAction.Void() or TriggerAction.Enqueue(queue)")
