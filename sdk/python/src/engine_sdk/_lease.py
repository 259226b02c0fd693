"""
A connection that another thread uses while the worker's loop sleeps; `_direct.py` says what for.

The thread acts in steps: `Lease.mute`, `send`, `receive` and `unmute`. A step is one call of C
code that keeps the interpreter's lock, from the look at `Lease.fds` to the record of what it did:
`extend` takes the numbers from `map`, which takes the arguments from the lists and calls the C
library. No other thread and no signal handler runs meanwhile, so between two steps the record is
true, whatever becomes of the thread. `Lease.end` empties `Lease.fds`; steps then do nothing.

Before Python 3.12 the cyclic collector can run finalizers of the program within a step, if Python
has no free tuple at hand. `Exchange.was_torn` tells when a step then had an effect after the end.
"""

from __future__ import annotations

import functools
import platform
import select
import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ._calls import Call

RESULT_BYTES_MAX: Final = 16 * 1024
"""The largest frame that a thread reads; larger ones are handed to the loop."""

_MSG_DONTWAIT: Final = 0x40
_MSG_NOSIGNAL: Final = 0x4000
_EPOLL_CTL_MOD: Final = 3


class System(NamedTuple):
    """Functions of the C library, called without releasing the interpreter's lock."""

    send: Callable[..., int]
    recv: Callable[..., int]
    epoll_ctl: Callable[..., int]
    new_buffer: Callable[[int], Any]
    size: Callable[[int], Any]


@functools.cache
def load_system() -> System | None:
    """Load the functions; None where they or the interpreter's lock are missing."""
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    is_known = sys.platform == "linux" and sys.byteorder == "little" and sys.maxsize > 2**32
    if not is_known or not has_lock or sys.implementation.name != "cpython":
        return None
    try:
        import ctypes  # Only here: it takes milliseconds, and may be missing.

        library = ctypes.PyDLL(None)
        send, recv, epoll_ctl = library.send, library.recv, library.epoll_ctl
    except (ImportError, OSError, AttributeError):
        return None
    send.restype = recv.restype = ctypes.c_ssize_t
    # No `argtypes`: converting by them makes objects for which the collector may run.
    return System(send, recv, epoll_ctl, ctypes.create_string_buffer, ctypes.c_size_t)


class Exchange:
    """One call on a lease, and the record of its steps."""

    def __init__(self, call: Call, frame: bytes) -> None:
        self.call = call
        self.frame = frame
        self.muted: list[int] = []
        """What `mute` returned."""
        self.sent: list[int] = []
        """What `send` returned: bytes, or -1."""
        self.got: list[int] = []
        """What `recv` returned."""
        self._seen: tuple[list[int], list[int], list[int]] | None = None

    @property
    def is_sent(self) -> bool:
        """Whether the frame was written, at least its first bytes."""
        return bool(self.sent) and self.sent[0] > 0

    @property
    def unsent(self) -> bytes:
        """The rest of the frame."""
        return self.frame[self.sent[0] :]

    def note_end(self) -> None:
        """Note what was done before the lease ended."""
        self._seen = ([*self.muted], [*self.sent], [*self.got])

    @property
    def was_torn(self) -> bool:
        """Whether a step had an effect after that."""
        return self._seen not in (None, (self.muted, self.sent, self.got))


class Lease:
    """A connection during one sleep of the loop, for one thread at a time."""

    def __init__(self, system: System, epoll: int, fd: int, bell: int) -> None:
        self._system = system
        self._fd = fd
        self._epoll = (epoll,)
        layout = "=IQ" if platform.machine() == "x86_64" else "@IQ"
        self._events = {mask: (struct.pack(layout, mask, fd),) for mask in (0, select.EPOLLIN)}
        self._ignored: deque[int] = deque(maxlen=0)
        self._buffer = system.new_buffer(RESULT_BYTES_MAX)
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._poll.register(bell, select.POLLIN)
        self.fds = [fd]
        """Empty once the lease has ended."""
        self.exchange: Exchange | None = None
        """The call that was made last; set before its first step."""
        self.answered = False
        """Whether a result was read."""

    def mute(self, exchange: Exchange) -> None:
        """Let input not wake the loop."""
        self._change(0, exchange.muted)

    def unmute(self) -> None:
        """Let input wake the loop again; harmless after the end, as the loop does the same."""
        self._change(select.EPOLLIN, self._ignored)

    def _change(self, mask: int, record: deque[int] | list[int]) -> None:
        change, event = self._system.epoll_ctl, self._events[mask]
        record.extend(map(change, self._epoll, (_EPOLL_CTL_MOD,), self.fds, event))

    def send(self, exchange: Exchange) -> None:
        """Write the frame, as far as the system takes it."""
        frame, flags = exchange.frame, _MSG_DONTWAIT | _MSG_NOSIGNAL
        sizes = (self._system.size(len(frame)),)
        exchange.sent.extend(map(self._system.send, self.fds, (frame,), sizes, (flags,)))

    def wait(self, wait_ms: int) -> None:
        """Wait until something has arrived or the bell rings; not a step, as it changes nothing."""
        self._poll.poll(wait_ms)

    def receive(self, exchange: Exchange) -> None:
        """Read what has arrived into the buffer."""
        sizes, flags = (self._system.size(RESULT_BYTES_MAX),), (_MSG_DONTWAIT,)
        exchange.got.extend(map(self._system.recv, self.fds, (self._buffer,), sizes, flags))

    def received(self, exchange: Exchange) -> bytes:
        """Return what `receive` has read."""
        return bytes(self._buffer[: max(0, exchange.got[0])]) if exchange.got else b""

    def end(self) -> None:
        """Take the connection back; in the loop."""
        self.fds.clear()
        if self.exchange is not None:
            self.exchange.note_end()
            (event,) = self._events[select.EPOLLIN]
            self._system.epoll_ctl(*self._epoll, _EPOLL_CTL_MOD, self._fd, event)
