"""`AdminError`: the failed parts of an admin call, and the results of the other parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...wire.errors import KprotoError

__all__ = ["AdminError"]


class AdminError(KprotoError):
    """Parts of an admin call failed, for example some of several topics.

    - `results`: the results of the parts that succeeded, by part.
    - `errors`: the error of each part that failed, by part.
    - `unknown`: those parts of `errors` that a broker may have executed nevertheless, because a
      request was not answered. If a retry then finds the change in place, such as
      TOPIC_ALREADY_EXISTS after a creation that timed out, the part is in `unknown`, too.

    A part is, for example, a topic, a group or a partition; the method says which.
    """

    def __init__(
        self,
        action: str,
        results: Mapping[Any, Any],
        errors: Mapping[Any, KprotoError],
        unknown: Collection[Any] = (),
    ) -> None:
        self.action = action
        self.results = dict(results)
        self.errors = dict(errors)
        self.unknown = frozenset(unknown)
        super().__init__(_text(action, self.results, self.errors, self.unknown))


def _text(
    action: str,
    results: Mapping[Any, Any],
    errors: Mapping[Any, KprotoError],
    unknown: Collection[Any],
) -> str:
    """Returns the text of an error; it lists every failed part."""
    failed = "; ".join(
        f"{_part(part)}: {error}{_UNKNOWN if part in unknown else ''}"
        for part, error in errors.items()
    )
    return f"{action}: {len(errors)} of {len(errors) + len(results)} failed: {failed}"


_UNKNOWN = " (an attempt was not answered; a broker may have made the change)"


def _part(part: Any) -> str:
    match part:
        case (str(topic), int(partition)) if type(part) is tuple:
            return f"{topic}[{partition}]"
        case str():
            return repr(part)
        case int():
            return f"broker {part}"
    return str(part)
