"""The modes of members, and the value of a record that most members release."""

from __future__ import annotations

from typing import Final

__all__ = ["ACCEPT", "JAVA", "MODES", "POISON"]

#: The modes of the members of a storm.
MODES: Final = ("explicit", "implicit", "run")
#: The mode of the members that settle the last records.
ACCEPT: Final = "accept"
#: The mode of members of Java's client.
JAVA: Final = "java"
#: Only implicit members accept a record with this value.
POISON: Final = b"poison"
