"""A configuration that stays current, on an engine in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Connect
from engine_sdk import EngineError, LiveConfiguration, TriggerAction, Worker, _configuration
from fakes import LIMIT_S, FakeEngine


class Values:
    """The functions of ``engine-configuration``, on the worker itself."""

    def __init__(self, worker: Worker, engine: FakeEngine) -> None:
        self.value: Any = {"port": 1}
        self.version = 1
        self.error: EngineError | None = None
        self.registered: list[Any] = []
        self.reads = 0
        self.hold: threading.Event | None = None
        """While set, a read waits for it with its answer ready."""
        self.held = threading.Event()
        self._worker = worker
        self._engine = engine
        worker.register_function("configuration::get", self._get)
        worker.register_function("configuration::register", self._register)

    def set(self, value: Any) -> None:
        self.value, self.version = value, self.version + 1
        self.fire()

    def fire(self) -> None:
        """Call the function of the trigger."""
        frame = self._engine.of_type("registertrigger")[-1]
        assert (frame["trigger_type"], frame["config"]) == (
            "configuration",
            {"configuration_id": "mail"},
        )
        void = TriggerAction.Void()
        self._worker.trigger({"function_id": frame["function_id"], "payload": {}, "action": void})

    def _get(self, payload: Any) -> Any:
        assert payload == {"id": "mail"}
        self.reads += 1
        if self.error is not None:
            raise self.error
        answer = {"id": "mail", "value": self.value, "version": self.version}
        if self.hold is not None:
            self.held.set()
            assert self.hold.wait(LIMIT_S)
        return answer

    def _register(self, payload: Any) -> None:
        self.registered.append(payload)
        self.error = None


@pytest.fixture
def values(worker: Worker, engine: FakeEngine) -> Values:
    return Values(worker, engine)


class Heard:
    """The values that a listener gets."""

    def __init__(self, live: LiveConfiguration) -> None:
        self.all: list[Any] = []
        self._changed = threading.Condition()
        live.on_change(self._hear)

    def _hear(self, value: Any) -> None:
        with self._changed:
            self.all.append(value)
            self._changed.notify_all()

    def wait(self, value: Any) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: value in self.all, LIMIT_S), self.all


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat failed reads at once."""
    monkeypatch.setattr(_configuration, "RETRY_FIRST_S", 0.001)
    monkeypatch.setattr(_configuration, "RETRY_MAX_S", 0.002)


def settles(holds: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    reached = threading.Event()
    for _ in range(int(LIMIT_S * 200)):
        if holds():
            return
        reached.wait(0.005)
    raise AssertionError("it never came")


def test_a_value_follows_its_changes(worker: Worker, values: Values) -> None:
    mail = worker.configuration("mail")
    heard = Heard(mail)
    assert (mail.id, mail.value, mail.version, mail.error) == ("mail", {"port": 1}, 1, None)

    values.set({"port": 2})
    heard.wait({"port": 2})

    assert (mail.value, mail.version) == ({"port": 2}, 2)
    assert values.registered == []


def test_a_described_configuration_is_registered_first(worker: Worker, values: Values) -> None:
    with worker.configuration("mail", schema=True, initial_value={"port": 1}) as mail:
        assert mail.value == {"port": 1}

    assert values.registered == [{"id": "mail", "schema": True, "initial_value": {"port": 1}}]


def test_the_trigger_is_registered_before_the_first_read(
    worker: Worker, values: Values, engine: FakeEngine
) -> None:
    worker.configuration("mail")

    kinds = [(frame["type"], frame.get("function_id")) for frame in engine.frames]
    trigger = next(i for i, (kind, _) in enumerate(kinds) if kind == "registertrigger")
    assert trigger < kinds.index(("invokefunction", "configuration::get"))


def test_a_change_while_a_value_is_read_is_read_as_well(worker: Worker, values: Values) -> None:
    mail = worker.configuration("mail")
    heard = Heard(mail)
    values.hold = threading.Event()
    values.set({"port": 2})
    assert values.held.wait(LIMIT_S)
    hold, values.hold = values.hold, None
    values.set({"port": 3})
    values.set({"port": 4})
    hold.set()

    heard.wait({"port": 4})
    assert heard.all[0] == {"port": 2}
    assert (mail.value, mail.version) == ({"port": 4}, 4)


def test_after_a_reconnect_the_value_is_read_again(
    worker: Worker, values: Values, engine: FakeEngine
) -> None:
    mail = worker.configuration("mail")
    heard = Heard(mail)
    values.value, values.version = {"port": 9}, 7

    engine.drop()

    heard.wait({"port": 9})
    assert mail.version == 7


def test_a_read_that_fails_keeps_the_value_and_is_repeated(
    worker: Worker, values: Values, quick: None
) -> None:
    errors: list[EngineError] = []
    mail = worker.configuration("mail", on_error=errors.append)
    heard = Heard(mail)
    values.error = EngineError("EXPAND_FAILED", "no variable SMTP_KEY")
    values.fire()

    settles(lambda: values.reads > 5)
    assert mail.value == {"port": 1}
    assert mail.error is not None
    assert mail.error.code == "EXPAND_FAILED"
    values.value, values.error = {"port": 2}, None

    heard.wait({"port": 2})
    assert mail.error is None
    assert [error.code for error in errors] == ["EXPAND_FAILED"]


def test_a_failure_is_logged_once(
    worker: Worker, values: Values, quick: None, caplog: pytest.LogCaptureFixture
) -> None:
    mail = worker.configuration("mail")
    values.error = EngineError("EXPAND_FAILED", "no variable SMTP_KEY")
    values.fire()
    settles(lambda: values.reads > 3)
    mail.close()

    lines = [record.getMessage() for record in caplog.records if "keeps its" in record.getMessage()]
    assert lines == [
        "[engine] Configuration mail keeps its value: EXPAND_FAILED: no variable SMTP_KEY"
    ]


def test_a_first_read_that_fails_is_raised_and_nothing_is_followed(
    worker: Worker, values: Values, engine: FakeEngine
) -> None:
    values.error = EngineError("NOT_REGISTERED", "There is no configuration mail")

    with pytest.raises(EngineError) as raised:
        worker.configuration("mail")

    assert raised.value.code == "NOT_REGISTERED"
    engine.wait(lambda frame: frame["type"] == "unregistertrigger")


def test_a_configuration_that_is_gone_is_registered_again(worker: Worker, values: Values) -> None:
    mail = worker.configuration("mail", initial_value={"port": 1})
    heard = Heard(mail)
    values.error = EngineError("NOT_REGISTERED", "There is no configuration mail")

    values.set({"port": 5})

    heard.wait({"port": 5})
    assert values.registered == [{"id": "mail", "initial_value": {"port": 1}}] * 2


def test_an_iterator_gets_the_latest_value_and_ends_when_it_is_closed(
    worker: Worker, values: Values
) -> None:
    mail = worker.configuration("mail")
    heard = Heard(mail)
    changes = mail.changes()
    for port in (2, 3):
        values.set({"port": port})
        heard.wait({"port": port})
    assert next(changes) == {"port": 3}

    rest: list[Any] = []
    reading = threading.Thread(target=lambda: rest.extend(changes))
    reading.start()
    values.set({"port": 4})
    heard.wait({"port": 4})
    settles(lambda: rest == [{"port": 4}])
    mail.close()
    mail.close()
    reading.join(LIMIT_S)

    assert not reading.is_alive()
    values.set({"port": 5})
    assert mail.value == {"port": 4}


def test_coroutines_follow_on_any_loop(worker: Worker, values: Values) -> None:
    async def run() -> list[Any]:
        mail = await worker.configuration_async("mail")
        seen = []
        # Once it listens: an earlier change is not reported.
        asyncio.get_running_loop().call_soon(values.set, {"port": 2})
        async for value in mail.changes_async():
            seen.append(value)
            if value["port"] == 4:
                mail.close()
            else:
                values.set({"port": value["port"] + 1})
        return seen

    async def on_the_workers_loop(_: Any) -> Any:
        return await run()

    assert asyncio.run(run()) == [{"port": 2}, {"port": 3}, {"port": 4}]
    values.value = {"port": 1}
    worker.register_function("shop::follow", on_the_workers_loop)
    followed = worker.trigger({"function_id": "shop::follow"})
    assert followed == [{"port": 2}, {"port": 3}, {"port": 4}]


def test_an_equal_value_is_no_change_though_python_finds_others_equal(
    worker: Worker, values: Values
) -> None:
    values.value = {"on": 1}
    mail = worker.configuration("mail")
    heard = Heard(mail)

    values.set({"on": 1})
    values.set({"on": True})
    heard.wait({"on": True})

    assert [type(value["on"]) for value in heard.all] == [bool]
    assert mail.version == 3


def test_the_end_of_the_worker_closes_it(engine: FakeEngine, connect: Connect) -> None:
    worker = connect(engine)
    values = Values(worker, engine)
    mail = worker.configuration("mail")
    changes = mail.changes()

    worker.shutdown()

    assert list(changes) == []
    assert mail.value == {"port": 1}
    with pytest.raises(EngineError) as raised:
        worker.configuration("mail")
    assert raised.value.code == "SHUTDOWN"
    assert values.reads == 1


def test_a_shutdown_during_the_first_read_raises(engine: FakeEngine, connect: Connect) -> None:
    worker = connect(engine)
    values = Values(worker, engine)
    values.hold = threading.Event()
    raised: list[EngineError] = []

    def open_() -> None:
        try:
            worker.configuration("mail")
        except EngineError as error:
            raised.append(error)

    opening = threading.Thread(target=open_)
    opening.start()
    assert values.held.wait(LIMIT_S)
    worker.shutdown()
    opening.join(LIMIT_S)
    values.hold.set()

    assert [error.code for error in raised] == ["SHUTDOWN"]


def test_a_mistake_of_a_listener_is_logged_and_stops_nothing(
    worker: Worker, values: Values, caplog: pytest.LogCaptureFixture
) -> None:
    mail = worker.configuration("mail")
    mail.on_change(lambda value: 1 / 0)
    heard = Heard(mail)
    remove = mail.on_change(lambda value: None)
    remove()
    remove()

    values.set({"port": 2})
    heard.wait({"port": 2})

    assert "A listener for changes of mail failed" in caplog.text


def test_what_does_not_fit_is_refused(worker: Worker, values: Values) -> None:
    mail = worker.configuration("mail")
    wrong: list[Any] = [
        lambda: worker.configuration(""),
        lambda: worker.configuration("mail", on_error=7),  # type: ignore[arg-type]
        lambda: mail.on_change(7),  # type: ignore[arg-type]
    ]
    for each in wrong:
        with pytest.raises(EngineError) as raised:
            each()
        assert raised.value.code == "INVALID_ARGUMENTS"

    async def blocks(_: Any) -> Any:
        return next(mail.changes())

    worker.register_function("shop::blocks", blocks)
    with pytest.raises(EngineError) as raised:
        worker.trigger({"function_id": "shop::blocks"})
    assert "would block the loop" in raised.value.message


def test_reads_do_not_share_the_deadline_of_the_handler_that_opened_it(
    worker: Worker, values: Values, engine: FakeEngine
) -> None:
    async def open_(_: Any) -> Any:
        return (await worker.configuration_async("mail")).value

    worker.register_function("shop::open", open_)
    assert worker.trigger({"function_id": "shop::open", "timeout_ms": 5_000}) == {"port": 1}

    read = engine.wait(lambda frame: frame.get("function_id") == "configuration::get")
    assert read["timeout_ms"] > 5_000
