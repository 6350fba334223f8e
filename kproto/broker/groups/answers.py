"""What members wait for: the answers to JoinGroup and SyncGroup, which come later or at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

__all__ = ["NO_ERROR", "Awaited", "JoinAnswer", "SyncAnswer", "ToldMember"]

A = TypeVar("A")

NO_ERROR: Final = "NONE"


class ToldMember(NamedTuple):
    """A member as its leader is told of it, with its metadata for the chosen protocol."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinAnswer:
    """The answer to JoinGroup; `error` is the name of a code. `members` are told to the leader."""

    member_id: str
    error: str = NO_ERROR
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[ToldMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    """The answer to SyncGroup; `error` is the name of a code."""

    error: str = NO_ERROR
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Awaited(Generic[A]):
    """An answer that is there once `answer` is not None, and then stays."""

    __slots__ = ("answer",)

    def __init__(self, answer: A | None = None) -> None:
        self.answer = answer
