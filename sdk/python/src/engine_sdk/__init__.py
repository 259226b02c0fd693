"""
Register functions with the engine and call the functions of other workers, in Python.

Example:
    from engine_sdk import InitOptions, register_worker

    worker = register_worker(options=InitOptions(worker_name="math"))
    worker.register_function("math::add", lambda payload: {"c": payload["a"] + payload["b"]})

"""

from ._channels import Channel, ChannelReader, ChannelWriter
from ._codec import TriggerInstance, __version__
from ._context import CallContext
from ._errors import EngineError, InvocationError, is_timeout
from ._logger import Logger
from ._reconnect import ConnectionState
from ._registrations import Registration, TriggerHandler
from ._requests import (
    EnqueueOptions,
    HttpInvocation,
    InitOptions,
    ReconnectOptions,
    TriggerAction,
    TriggerInput,
    TriggerRequest,
    TriggerTypeInput,
)
from ._worker import Worker, register_worker

__all__ = [
    "CallContext",
    "Channel",
    "ChannelReader",
    "ChannelWriter",
    "ConnectionState",
    "EngineError",
    "EnqueueOptions",
    "HttpInvocation",
    "InitOptions",
    "InvocationError",
    "Logger",
    "ReconnectOptions",
    "Registration",
    "TriggerAction",
    "TriggerHandler",
    "TriggerInput",
    "TriggerInstance",
    "TriggerRequest",
    "TriggerTypeInput",
    "Worker",
    "__version__",
    "is_timeout",
    "register_worker",
]
