"""Packages that are used where they are installed: the extra ``engine-sdk[fast]``."""

from __future__ import annotations

import importlib
import os
from types import ModuleType


def find_extra(name: str) -> ModuleType | None:
    """Import a package of the extra; None: it is not there, or ``ENGINE_SDK_FAST=0``."""
    if os.environ.get("ENGINE_SDK_FAST", "").lower() in ("0", "false"):
        return None
    try:
        return importlib.import_module(name)
    except Exception:
        return None  # Not installed, or not made for this Python: the plain way works as well.
