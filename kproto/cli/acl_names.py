r"""Writes and reads the names of ACLs in one notation, which `kproto acls` prints and takes.

`orders` is the resource of this name, and `orders-*` stands for all names with the prefix
`orders-`. `*` stands for all names. A backslash before a last `*` makes it part of a name:
`orders-\*` is the resource `orders-*`. Backslashes right before a last `*` are doubled.
"""

from __future__ import annotations

__all__ = ["acl_name_of", "acl_name_text"]


def acl_name_text(name: str, *, is_prefix: bool) -> str:
    """Returns a name or a prefix in the notation."""
    if is_prefix:
        return f"{name}{_backslashes(name)}*"
    if name.endswith("*") and name != "*":
        before = name[:-1]
        return rf"{before}{_backslashes(before)}\*"
    return name


def acl_name_of(text: str) -> tuple[str, bool]:
    """Returns the name in the notation `text`, and whether it is a prefix."""
    if not text.endswith("*") or text == "*":
        return text, False
    before = text[:-1]
    count = len(_backslashes(before))
    kept = before[: len(before) - count] + "\\" * (count // 2)
    return (f"{kept}*", False) if count % 2 else (kept, True)


def _backslashes(text: str) -> str:
    """Returns the backslashes at the end of `text`."""
    return text[len(text.rstrip("\\")) :]
