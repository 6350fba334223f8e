"""Binds a client to the event loop in which it was first used."""

from __future__ import annotations

import asyncio

from ...wire.errors import ConfigurationError

__all__ = ["LoopGuard"]


class LoopGuard:
    """Stores the event loop of a client's connections and tasks.

    `loop` is None until `check` is called in an event loop.
    """

    __slots__ = ("loop",)

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_gone(self) -> bool:
        """True once the loop is closed: no task of the client runs any more."""
        return self.loop is not None and self.loop.is_closed()

    def check(self) -> None:
        """Stores the running event loop at the first call that is made in an event loop.

        Later calls raise ConfigurationError if another event loop or no event loop runs. In another
        event loop, futures of the client would not wake their waiters, and two threads might change
        the same state.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a call that does not wait, outside of any loop
            loop = None
        if self.loop is None:
            self.loop = loop
        elif self.loop is not loop:
            which = "was closed since" if self.is_gone else "is another one"
            raise ConfigurationError(
                f"a client belongs to the event loop in which it was first used, and that {which}; "
                "create a client for each loop"
            )
