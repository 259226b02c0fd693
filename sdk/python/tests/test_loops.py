"""Which event loop a worker gets."""

from __future__ import annotations

import asyncio
import sys

import pytest

from conftest import Connect
from engine_sdk._extras import find_extra
from engine_sdk._loops import new_loop
from fakes import FakeEngine


class OwnLoop(asyncio.SelectorEventLoop):
    """What the policy of a program may make."""


def made() -> str:
    loop = new_loop()
    loop.close()
    return f"{type(loop).__module__}.{type(loop).__name__}"


@pytest.mark.skipif(find_extra("uvloop") is None, reason="uvloop is not there, or switched off")
def test_a_worker_gets_the_loop_of_uvloop_where_that_is_installed(
    connect: Connect, engine: FakeEngine
) -> None:
    assert made() == "uvloop.Loop"
    worker = connect(engine)

    async def loop_of_handler(_: object) -> str:
        return type(asyncio.get_running_loop()).__module__

    worker.register_function("a::loop", loop_of_handler)
    assert worker.trigger({"function_id": "a::loop"}) == "uvloop"


def test_a_worker_gets_the_loop_of_python_where_the_extra_is_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ENGINE_SDK_FAST", "0")

    assert made().startswith("asyncio.")


def test_a_program_with_a_policy_of_its_own_keeps_its_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asyncio, "new_event_loop", OwnLoop)

    assert made() == "test_loops.OwnLoop"


def test_windows_keeps_the_loop_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    assert made().startswith("asyncio.")
