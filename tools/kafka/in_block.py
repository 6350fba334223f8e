"""What runs inside a `with` block and is gone after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["InBlock"]


class InBlock(ABC):
    """Started as the block begins, closed as it ends; closed too where it did not start."""

    @abstractmethod
    def start(self) -> None:
        """Start it."""

    @abstractmethod
    def close(self) -> None:
        """Stop it, and remove what is left of it."""

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
