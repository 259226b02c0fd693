"""Who speaks on a line: the announcement of PROTOCOL 1.4."""

from __future__ import annotations

import locale
import os
import platform
import socket
from typing import Any

from ._codec import encode, frame, quote

__version__ = "0.1.0"

CAPABILITIES = ["cancel", "timeout", "progress", "batch"]
"""What this SDK supports besides the base protocol."""


def announcement(name: str, description: str | None, namespace: str | None) -> str:
    """Make the frame that tells the engine who this worker is."""
    who: dict[str, Any] = {
        "runtime": "python",
        "version": __version__,
        "name": name,
        "os": f"{platform.system().lower()} {platform.release()} ({platform.machine()})",
        "pid": os.getpid(),
        "isolation": os.environ.get("ENGINE_ISOLATION") or None,
        "capabilities": CAPABILITIES,
        "telemetry": {
            "language": _language(),
            "project_name": None,
            "framework": "engine-sdk-py",
        },
    }
    if description is not None:
        who["description"] = description
    if namespace is not None:
        who["namespace"] = namespace
    return frame(
        "invokefunction",
        function_id=quote("engine::workers::register"),
        action='{"type":"void"}',
        data=encode(who, "Announcement"),
    )


def worker_name(option: str | None) -> str:
    """Name a worker: by the option, else ``ENGINE_WORKER_NAME``, else ``<hostname>:<pid>``."""
    return option or os.environ.get("ENGINE_WORKER_NAME") or f"{socket.gethostname()}:{os.getpid()}"


def _language() -> str | None:
    try:
        language = locale.getlocale()[0]
    except ValueError:
        return None  # A locale that Python does not know.
    return language.replace("_", "-") if language else None
