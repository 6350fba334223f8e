"""Finds the topics and groups that names and patterns name. A pattern has `*`, `?` or `[`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase, translate

from ..client import Client
from .command_error import CommandError

__all__ = ["expanded", "has_pattern", "is_pattern", "subscribed", "topics_of"]


def is_pattern(name: str) -> bool:
    """Returns True for a pattern, such as `orders.*`. No topic has such a name."""
    return any(each in name for each in "*?[")


def has_pattern(names: Iterable[str]) -> bool:
    """Returns True if one of `names` is a pattern."""
    return any(map(is_pattern, names))


def expanded(
    names: Iterable[str], known: Collection[str], *, what: str, needs_match: bool = False
) -> list[str]:
    """Returns `names`, with the known names that a pattern matches in its place, each once.

    A known name is never a pattern: the ids of groups may have a `*`. With `needs_match` raises
    CommandError for a pattern that matches none; `what` is "topic" or "group".
    """
    found: dict[str, None] = {}
    for name in names:
        if name in known or not is_pattern(name):
            found[name] = None
            continue
        matching = [each for each in known if fnmatchcase(each, name)]
        if needs_match and not matching:
            raise CommandError(f"no {what} matches {name!r}")
        found |= dict.fromkeys(matching)
    return list(found)


async def topics_of(
    client: Client, names: Iterable[str], *, needs_match: bool = False
) -> list[str]:
    """Returns the topics that names and patterns name; a pattern matches no internal topic.

    Raises as `expanded`. Lists the topics of the cluster only if there is a pattern.
    """
    wanted = list(names)
    known = sorted(await client.admin.list_topics()) if has_pattern(wanted) else []
    return expanded(wanted, known, what="topic", needs_match=needs_match)


def subscribed(names: Iterable[str]) -> list[str] | re.Pattern[str]:
    """Returns the topics to which a group subscribes: a regular expression if there is a pattern.

    The group then also reads topics that are created later, if a pattern matches them.
    """
    wanted = list(dict.fromkeys(names))
    if not has_pattern(wanted):
        return wanted
    return re.compile("|".join(map(translate, wanted)))
