"""
Register functions with the engine and call the functions of other workers, in Python.

Example:
    from engine_sdk import InitOptions, register_worker

    worker = register_worker(options=InitOptions(worker_name="math"))
    worker.register_function("math::add", lambda payload: {"c": payload["a"] + payload["b"]})

"""

from ._channels import Channel, ChannelReader, ChannelWriter
from ._codec import TriggerInstance, __version__
from ._configuration import ConfigurationOptions, LiveConfiguration
from ._context import CallContext
from ._errors import EngineError, InvocationError, is_timeout
from ._logger import Logger
from ._reconnect import ConnectionState
from ._register import register_worker
from ._registrations import Registration, TriggerHandler
from ._requests import (
    CallOptions,
    EnqueueOptions,
    HttpInvocation,
    InitOptions,
    ReconnectOptions,
    TriggerAction,
    TriggerInput,
    TriggerRequest,
    TriggerTypeInput,
)
from ._state_watch import StateChange, StateWatch
from ._streams import Stream, StreamGroup, StreamSource
from ._worker import Worker

__all__ = [
    "CallContext",
    "CallOptions",
    "Channel",
    "ChannelReader",
    "ChannelWriter",
    "ConfigurationOptions",
    "ConnectionState",
    "EngineError",
    "EnqueueOptions",
    "HttpInvocation",
    "InitOptions",
    "InvocationError",
    "LiveConfiguration",
    "Logger",
    "ReconnectOptions",
    "Registration",
    "StateChange",
    "StateWatch",
    "Stream",
    "StreamGroup",
    "StreamSource",
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
