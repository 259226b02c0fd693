"""Where a test engine offers its connection to `register_worker`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._transport import Transport
    from ._worker import Worker


class Offer(Protocol):
    """What test engines offer."""

    async def dial(self) -> Transport:
        """Connect a worker."""
        ...

    def adopt(self, worker: Worker) -> None:
        """Remember a worker, to connect it to the engine of the next test."""


offers: list[Offer] = []
"""Empty while no test engine runs."""
