"""The base class of servers that run inside a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["ServerContextManager"]


class ServerContextManager(ABC):
    """Starts the server before the block, and closes it after the block or a failed start."""

    @abstractmethod
    def start(self) -> None:
        """Starts the server."""

    @abstractmethod
    def close(self) -> None:
        """Stops the server, and removes its files."""

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
