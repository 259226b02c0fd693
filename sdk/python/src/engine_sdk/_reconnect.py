"""
Keeps a session connected: dials, transports frames both ways, reconnects with growing delays.

Only this file decides when to dial; the session decides what to send on a new connection. A dial
that is not answered does not delay the next one, so that a worker is connected within one delay
after the engine's return, whatever became of its packets before.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeVar

from ._requests import ReconnectOptions
from ._session import Session
from ._transport import ENGINE_URL_DEFAULT, LEAVE_MS, ConnectionLost, Dial, Transport

BATCH_CHARS_MAX: Final = 256 * 1024
"""Messages share a frame up to this size: below 1 MiB, whatever the characters."""

RECONNECT_JITTER: Final = 0.3
"""Random part of the delay, in both directions, so that workers spread."""

DIALS_MAX: Final = 2
"""Dials in progress at once: the oldest, and one that is begun anew after each delay."""

REFUSED_MAX_MS: Final = 30_000
"""
Longest delay after refusals, unless `max_ms` is longer: each one is a call of a function that
decides, and the engine, which was reached, is not about to return.
"""

log = logging.getLogger("engine_sdk")
Result = TypeVar("Result")

ConnectionState = Literal["connecting", "connected", "reconnecting", "disconnected", "failed"]
"""
``connecting`` at first, ``reconnecting`` after a loss or a failed attempt, ``disconnected``
after ``shutdown()``, ``failed`` when it will not try again.
"""


def wait_before(attempt: int, options: ReconnectOptions, chance: float, max_ms: float = 0) -> float:
    """
    Return the delay before the next attempt.

    Args:
        attempt: 1 for the first attempt after a loss.
        options: The delays.
        chance: Random number from 0 to 1; 0.5 means no jitter.
        max_ms: Longest delay, if it is longer than that of the options.

    Returns:
        Milliseconds.

    """
    doubled = options.first_ms * 2.0 ** min(attempt - 1, 30)
    mean = min(doubled, max(options.max_ms, max_ms) / (1 + RECONNECT_JITTER))
    return mean * (1 + RECONNECT_JITTER * (2 * chance - 1))


async def until_stopped(work: Awaitable[Result], stop: asyncio.Event) -> Result | None:
    """Wait for work; once ``stop`` is set, cancel it and return None."""
    task = asyncio.ensure_future(work)
    stopper = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopper}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        stopper.cancel()


class Reconnector:
    """Keeps one session connected until `stop`; belongs to one loop."""

    def __init__(
        self,
        session: Session,
        dial: Dial,
        address: str,
        options: ReconnectOptions,
        state_changed: Callable[[ConnectionState], None],
        chance: Callable[[], float],
        final_frames: Callable[[], list[bytes]] = list,
    ) -> None:
        self._final_frames = final_frames
        self._session = session
        self._dial = dial
        self._address = address
        self._options = options
        self._state_changed = state_changed
        self._chance = chance
        self._stop = asyncio.Event()
        self._transport: Transport | None = None
        self._discards: set[asyncio.Task[None]] = set()
        """Tasks that end dials in whose place another one is used."""
        self._is_due = False
        """Whether a flush is scheduled."""
        self._is_cut = False
        """Whether the connection is being closed."""
        self.failure: str | None = None
        """Why it gave up; None: it did not."""
        self._last_logged = ""
        self._state: ConnectionState | None = None

    @property
    def transport(self) -> Transport | None:
        """The open connection."""
        return self._transport

    def output_ready(self) -> None:
        """Schedule a flush for the end of this loop iteration."""
        if not self._is_due and self._transport is not None:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def stop(self) -> None:
        """Write what is queued, close the connection and end."""
        self._stop.set()

    def cut(self) -> None:
        """Close the connection; a new one follows."""
        if self._transport is not None and not self._is_cut:
            self._is_cut = True
            task = asyncio.ensure_future(self._transport.close())
            self._discards.add(task)
            task.add_done_callback(self._discards.discard)

    def refuse(self, reason: str) -> None:
        """End: the engine refuses this worker."""
        self.failure = reason
        self.stop()

    async def run(self) -> None:
        """Stay connected until `stop`, or until the attempts are used up."""
        self._set_state("connecting")
        while (transport := await self._connect()) is not None:
            await self._stay(transport)
            if self._stop.is_set():
                break
            if not self._may_dial(self._session.refusals):
                self._give_up(self._session.refusals, "the engine refuses this worker")
                break
            self._set_state("reconnecting")
            await until_stopped(asyncio.sleep(self._delay_after_loss_s()), self._stop)
        if self._discards:
            await asyncio.wait(self._discards, timeout=LEAVE_MS / 1000)
        self._set_state("failed" if self.failure else "disconnected")

    async def _connect(self) -> Transport | None:
        """
        Dial until a connection opens; None: stopped, or the attempts are used up.

        After each delay a dial begins beside the oldest that is not answered: the oldest has its
        whole timeout, for slow networks, and the new one finds an engine that has returned.
        """
        now, stopper = asyncio.get_running_loop().time, asyncio.ensure_future(self._stop.wait())
        dials: list[asyncio.Task[Transport]] = []
        failures, due = 0, now()
        try:
            while not self._stop.is_set():
                if now() >= due and self._may_dial(failures + len(dials)):
                    if len(dials) == DIALS_MAX:
                        failures += 1
                        self._discard(dials.pop())
                    dials.append(asyncio.ensure_future(self._dial()))
                    due = now() + self._delay_s(failures + len(dials))
                timeout = max(0.0, due - now()) if self._may_dial(failures + len(dials)) else None
                await asyncio.wait(
                    {*dials, stopper}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
                )
                for dial in [dial for dial in dials if dial.done()]:
                    dials.remove(dial)
                    if (lost := _lost(dial)) is None:
                        return dial.result()
                    failures += 1
                    self._session.refusals = 0
                    due = due if dials else now() + self._delay_s(failures)
                    self._failed(lost, failures, bool(dials))
                if self.failure is not None:
                    return None
                if now() >= due or not dials:
                    self._set_state("reconnecting")
            return None
        finally:
            stopper.cancel()
            for dial in dials:
                self._discard(dial)

    def _may_dial(self, dials: int) -> bool:
        attempts_max = self._options.max_attempts
        return attempts_max is None or dials < attempts_max

    def _delay_s(self, attempt: int) -> float:
        return wait_before(max(attempt, 1), self._options, self._chance()) / 1000

    def _delay_after_loss_s(self) -> float:
        if (refusals := self._session.refusals) == 0:
            return self._delay_s(1)
        return wait_before(refusals, self._options, self._chance(), REFUSED_MAX_MS) / 1000

    def _failed(self, lost: ConnectionLost, failures: int, is_dialling: bool) -> None:
        if is_dialling or self._may_dial(failures):
            hint = _start_hint(self._address, str(lost))
            self._log_once(
                f"Cannot reach the engine at {self._address} ({lost}); "
                f"retrying in the background{hint}"
            )
            return
        self._give_up(failures, str(lost))

    def _give_up(self, attempts: int, reason: str) -> None:
        self.failure = f"Gave up {self._address} after {attempts} attempts: {reason}"
        log.error("[engine] %s", self.failure)

    def _discard(self, dial: asyncio.Task[Transport]) -> None:
        """End a dial in whose place another one is used."""
        task = asyncio.ensure_future(_end_dial(dial))
        self._discards.add(task)
        task.add_done_callback(self._discards.discard)

    async def _stay(self, transport: Transport) -> None:
        """Use a connection until it ends."""
        if self._last_logged:
            log.info("[engine] Reached the engine at %s", self._address)
        self._last_logged = ""
        self._session.opened()
        self._set_state("connected")
        lost_reason = await self._carry(transport)
        self._session.closed(lost_reason)
        if not self._stop.is_set():
            self._log_once(f"Lost the connection to {self._address} ({lost_reason}); reconnecting")

    async def _carry(self, transport: Transport) -> str:
        """Transport frames both ways until the connection ends, or until all is written on stop."""
        self._transport, self._is_cut = transport, False
        transport.listen(self._received, self.output_ready)
        self.flush()
        ended = asyncio.ensure_future(transport.ended())
        stopper = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({ended, stopper}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                with contextlib.suppress(asyncio.TimeoutError, ConnectionLost):
                    await asyncio.wait_for(self._write_all(transport), LEAVE_MS / 1000)
            await asyncio.wait_for(transport.close(), LEAVE_MS / 1000)
        except (asyncio.TimeoutError, ConnectionLost):
            pass  # The peer does not answer; the connection is closed anyway.
        finally:
            self._transport = None
            reason = ended.result() if ended.done() else "closed"
            ended.cancel()
            stopper.cancel()
        return reason

    async def _write_all(self, transport: Transport) -> None:
        self.flush()
        while transport.is_full:
            await transport.drain()
            self.flush()
        transport.write(self._final_frames())

    def _received(self, frames: list[str]) -> None:
        batch = self._transport is not None and self._transport.batch
        for frame in frames:
            for message in frame.split("\n") if batch else (frame,):
                self._session.received(message)
        # After the callbacks that these messages scheduled, so that all answers leave together.
        self.output_ready()

    def flush(self) -> None:
        """Write the session's frames, as far as the connection accepts them."""
        self._is_due = False
        transport = self._transport
        if transport is None:
            return
        try:
            while not transport.is_full and (frames := self._take(transport.batch)):
                transport.write(frames)
        except ConnectionLost:
            return  # `ended` reports it as well.

    def _take(self, batch: bool) -> list[str]:
        """Take the frames of one write."""
        texts: list[str] = []
        size = 0
        while size < BATCH_CHARS_MAX and (text := self._session.take()) is not None:
            texts.append(text)
            size += len(text) + 1
        if not batch or len(texts) < 2:
            return texts
        if size > BATCH_CHARS_MAX:
            # The last one went beyond. It may be large, so it is a frame of its own.
            return ["\n".join(texts[:-1]), texts[-1]]
        return ["\n".join(texts)]

    def _set_state(self, state: ConnectionState) -> None:
        if state != self._state:
            self._state = state
            self._state_changed(state)

    def _log_once(self, text: str) -> None:
        # Once per reason, not per attempt.
        log.log(
            logging.DEBUG if text == self._last_logged else logging.WARNING, "[engine] %s", text
        )
        self._last_logged = text


def _lost(dial: asyncio.Task[Transport]) -> ConnectionLost | None:
    """Return why a dial that has ended failed; None: it did not."""
    failure = None if dial.cancelled() else dial.exception()
    return failure if isinstance(failure, ConnectionLost) else None


async def _end_dial(dial: asyncio.Task[Transport]) -> None:
    dial.cancel()
    with contextlib.suppress(asyncio.CancelledError, asyncio.TimeoutError, ConnectionLost):
        transport = await dial  # It may have opened at the same moment.
        await asyncio.wait_for(transport.close(), LEAVE_MS / 1000)


def _start_hint(address: str, reason: str) -> str:
    """Say what to do where nothing listens at the address that is dialled without being given."""
    is_refused = "refused" in reason or "Connect call failed" in reason
    if address.rstrip("/") != ENGINE_URL_DEFAULT or not is_refused:
        return ""
    return "; start the engine, or set ENGINE_URL to its address"
