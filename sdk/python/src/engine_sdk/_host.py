"""What a session leaves to others, because it takes threads, sockets or time."""

from __future__ import annotations

from typing import Protocol

from ._messages import Invocation, TriggerInstance
from ._offers import Function, TriggerType


class Host(Protocol):
    """What a session needs done; every method returns at once."""

    def output_ready(self) -> None:
        """Call `take`: it has something to give."""

    def deadline_set(self, at: float) -> None:
        """Call `expire` at this time, perhaps earlier than thought."""

    def run_function(self, invocation: Invocation, function: Function) -> None:
        """Run a function, then `finish`."""

    def abort(self, invocation: Invocation, reason: str | None) -> None:
        """Tell a handler that nobody wants its result any more."""

    def provide(self, trigger: TriggerInstance, offer: TriggerType, line: int) -> None:
        """Start a trigger, then `answer_trigger`."""

    def withdraw(self, trigger_id: str) -> None:
        """End a trigger, if it was started."""

    def withdraw_all(self, offer: TriggerType) -> None:
        """End all triggers of a type."""

    def line_lost(self) -> None:
        """Tell handlers that nobody waits, and end all triggers: a new line brings them anew."""

    def refused(self, reason: str) -> None:
        """End: the engine does not want this worker at all."""
