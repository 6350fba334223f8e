"""The one event loop of a client: that in which it was first used."""

from __future__ import annotations

import asyncio

from ...wire.errors import ConfigurationError

__all__ = ["LoopGuard"]


class LoopGuard:
    """Where the connections and tasks of a client are. `loop` is None until it is used."""

    __slots__ = ("loop",)

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_gone(self) -> bool:
        """True once the loop is closed: nothing of the client moves any more."""
        return self.loop is not None and self.loop.is_closed()

    def check(self) -> None:
        """Raises ConfigurationError in any other loop than that of the first call.

        There a future would never wake who waits for it, and two threads would change the same
        state at once.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a call that waits for nothing, from anywhere
            loop = None
        if self.loop is None:
            self.loop = loop
        elif self.loop is not loop:
            which = "was closed since" if self.is_gone else "is another one"
            raise ConfigurationError(
                f"a client belongs to the event loop in which it was first used, and that {which}; "
                "make a client for each loop"
            )
