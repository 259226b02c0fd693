"""
Sync calls whose I/O the calling thread does itself, while the worker's loop sleeps.

Waking the loop for a call, and the caller for its result, costs more than the call. So before the
loop sleeps in its selector it lends the connection, which makes a lease (`_lease.py`) until it
wakes. A thread that makes a sync call takes the lease, writes the frame, waits for the socket and
reads the result. On waking, for any reason, the loop first takes back the connection, with what the
thread has left there: a call without result, bytes that are not handled yet. All other code of the
SDK therefore runs as if only the loop used the connection.

What holds:

* Neither side waits for the other. Between any two instructions a thread may raise, as signal
  handlers make it do, stop for long, or call again from a signal handler or finalizer: its steps
  are atomic and recorded, and once the lease has ended they do nothing.
* The thread ends its call only if it has read exactly one whole frame with the result of that call.
  Anything else is handed to the loop, which takes over the call as one that was sent, and reads the
  bytes as if it had received them itself. It wakes the thread, which then waits as usual, by a
  bell: an eventfd that the thread polls together with the socket.
* The loop wakes after `LEASE_MS` without a new call. A call that takes so long ends in the loop.

The ordinary way, through the loop, is taken unless the connection is plain TCP on Linux without
anything else under way: other calls, queued frames, parts of a message. It is also taken on
uvloop, in asyncio's debug mode, without the interpreter's lock, after a fork, for large payloads,
short timeouts and progress, and for the first call after a pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import selectors
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from websockets.frames import Frame, Opcode

from ._calls import Call, outcome
from ._codec import decode
from ._lease import Exchange, Lease, load_system
from ._reconnect import Reconnector
from ._session import ACCESS_KEY, Session
from ._threads import Mailbox
from ._transport import WebSocketTransport

LEASE_MS: Final = 50
"""Longest sleep of the loop on a lease without a new call: what an interrupted thread can cost."""

SENT_CHARS_MAX: Final = 64 * 1024
"""Larger calls are written by the loop, as a step keeps all other threads waiting."""


class DirectCalls:
    """Lends the connection of one worker to the threads that call."""

    def __init__(
        self,
        loop: LendingLoop,
        session: Session,
        reconnector: Reconnector,
        mailbox: Mailbox,
        now: Callable[[], float],
    ) -> None:
        self._loop = loop
        self._session = session
        self._reconnector = reconnector
        self._mailbox = mailbox
        self._now = now
        self._process = os.getpid()
        self._offers: list[Lease] = []
        """The lease, while no thread uses it."""
        self._lease: Lease | None = None
        self._transport: WebSocketTransport | None = None
        """What is lent."""
        self._bells: deque[int] = deque()
        """The first one wakes the thread; the second has woken one before, and may still ring."""
        self._is_wanted = False
        """Whether a thread made a sync call since the loop last lent the connection."""

    # In the calling thread.

    def exchange(self, call: Call) -> bool:
        """
        Make a call in this thread, if the connection is lent.

        Returns:
            Whether it was sent; it then ends like any other. Else the loop has to start it.

        """
        self._is_wanted = True
        is_special = call.progress is not None or call.timeout_ms < 2 * LEASE_MS
        if is_special or call.weight > SENT_CHARS_MAX or os.getpid() != self._process:
            return False
        if call.done:  # Cancelled already.
            return False
        if not self._mailbox.is_empty:  # What this thread asked the loop for before comes first.
            return False
        try:
            lease = self._offers.pop()
        except IndexError:
            return False
        frame = Frame(Opcode.TEXT, call.encode(self._now()).encode()).serialize(mask=True)
        exchange = lease.exchange = Exchange(call, frame)
        lease.mute(exchange)
        lease.send(exchange)
        if not exchange.is_sent or exchange.unsent or not self._await_result(lease, exchange):
            self._mailbox.put(lambda: self._check(exchange))  # Wakes the loop, if it still sleeps.
        return exchange.is_sent

    def _await_result(self, lease: Lease, exchange: Exchange) -> bool:
        """Wait for the result and end the call; false: the loop has to do so."""
        lease.wait(2 * LEASE_MS)
        lease.receive(exchange)
        try:
            ended = outcome(_read_result(lease.received(exchange), exchange.call))
        except (ValueError, IndexError):
            return False
        if not lease.fds:
            return False  # The loop has taken over the call, with the same bytes.
        lease.answered = True
        lease.unmute()
        self._offers.append(lease)
        exchange.call.end(*ended)
        return True

    # In the loop.

    def lend(self, timeout: float | None) -> Lease | None:
        """Lend the connection until `take_back`, if that is safe and worth it."""
        if not self._is_wanted or (timeout is not None and timeout * 1000 < 1):
            return None
        if not self._session.is_quiet:
            return None
        transport, system = self._reconnector.transport, load_system()
        if system is None or not isinstance(transport, WebSocketTransport):
            return None
        fd = None if self._loop.get_debug() else transport.idle_fd()
        if fd is None:
            return None
        try:
            while len(self._bells) < 2:
                self._bells.append(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))
        except OSError:
            return None  # The process has no more descriptors.
        self._is_wanted = False
        self._transport = transport
        self._lease = Lease(system, self._loop.selector.fileno(), fd, self._bells[0])
        self._offers.append(self._lease)
        return self._lease

    def take_back(self) -> None:
        """End the lease and take over what the thread has not completed."""
        lease, transport = self._lease, self._transport
        assert lease is not None, "take_back follows lend"
        assert transport is not None, "take_back follows lend"
        self._offers.clear()
        lease.end()
        self._lease, exchange = None, lease.exchange
        if lease.answered:
            transport.note_input()
        if exchange is not None and exchange.is_sent and not exchange.call.done:
            self._session.adopt_call(exchange.call)
            transport.resume(exchange.unsent, lease.received(exchange))
            self._ring()

    def _ring(self) -> None:
        os.eventfd_write(self._bells[0], 1)
        self._bells.rotate()
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bells[0])

    def _check(self, exchange: Exchange) -> None:
        """Close the connection if a step was torn; a new one follows."""
        if exchange.was_torn:
            if exchange.is_sent:
                self._session.adopt_call(exchange.call)
            self._reconnector.cut()

    def close(self) -> None:
        """Release what it holds, with its loop."""
        while self._bells:
            os.close(self._bells.pop())


def _read_result(data: bytes, call: Call) -> dict[str, Any]:
    """
    Read one whole frame with the result of a call.

    Raises:
        ValueError, IndexError: When the bytes are anything else.

    """
    start, size = 2, data[1]
    if size == 126:
        start, size = 4, int.from_bytes(data[2:4], "big")
    if data[0] != 0x81 or data[1] > 126 or start + size != len(data):
        raise ValueError("it is not one whole text frame")
    text = data[start:].decode()
    if ACCESS_KEY in text:
        raise ValueError("the loop opens channels")
    message = decode(text)
    if (message["type"], message.get("invocation_id")) != ("invocationresult", call.invocation_id):
        raise ValueError("it is another message")
    return message


class LendingSelector(selectors.DefaultSelector):
    """A selector that lends the connection while it waits."""

    calls: DirectCalls | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events."""
        calls = self.calls
        lease = None if calls is None else calls.lend(timeout)
        if calls is None or lease is None:
            return super().select(timeout)
        ends_at = math.inf if timeout is None else time.monotonic() + timeout
        events: list[tuple[selectors.SelectorKey, int]] = []
        try:
            while not events and (left := ends_at - time.monotonic()) > 0:
                latest = lease.exchange
                events = super().select(min(left, LEASE_MS / 1000))
                if lease.exchange is latest:
                    break  # No new call. While they come, taking one over would slow it down.
            return events
        finally:
            calls.take_back()


class LendingLoop(asyncio.SelectorEventLoop):
    """An event loop on a `LendingSelector`."""

    def __init__(self) -> None:
        self.selector = LendingSelector()
        super().__init__(self.selector)

    def close(self) -> None:
        super().close()
        if (calls := self.selector.calls) is not None:
            self.selector.calls = None
            calls.close()
