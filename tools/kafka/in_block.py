"""The base class of servers that run inside a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["InBlock"]


class InBlock(ABC):
    """Starts with the block and closes at its end, or after a failed start."""

    @abstractmethod
    def start(self) -> None:
        """Starts it."""

    @abstractmethod
    def close(self) -> None:
        """Stops it, and removes its remains."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
