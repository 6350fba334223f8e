"""Checking the attributes of an event, by a plan where their names were met before.

The events of a topic name the same attributes in the same order. A plan is the checks that such a
tuple of names calls for, looked up once. It is learnt from an event that was found right, so that
its names are right and none that is required is missing; the values are checked by it as they are
without it. Names come from outside, so that plans are few and short. Where the attributes stand,
this module does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from .rules import Check, SpecVersion

__all__ = ["MAX_NAMES", "MAX_PLANS", "checked_attributes"]

#: Past this many plans of a version none is learnt: names in ever new orders would cost twice.
MAX_PLANS: Final = 1024
#: Tuples of more names have no plan.
MAX_NAMES: Final = 32


def checked_attributes(
    given: dict[str, Any],
    version: SpecVersion,
    otherwise: Callable[[str, Any, SpecVersion], Any],
    *,
    clauses: tuple[str, ...] = (),
    required_clauses: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Returns the attributes that are set, each checked; `given`, changed, where all are.

    The usual text is found right at once. `otherwise(name, value, version)` looks closely at any
    other value that is not None, which means unset, and gives what the event holds. Raises
    CloudEventError, which cites `clauses`, those of the binding or format, for a name that no
    attribute may have, and `required_clauses` for a required attribute that is missing.
    """
    names = tuple(given)
    plan = version.plans.get(names)
    checks: Iterable[Check]
    if plan is None:
        # One by one, so that what is wrong first is told first.
        checks = (version.checked_spec(name, name, clauses).check_of(name) for name in names)
    else:
        checks = plan
    unset = False
    # As many of one as of the other; `strict` would cost a tenth.
    for value, (name, found_right, quick) in zip(given.values(), checks):  # noqa: B905
        if type(value) is str and (value in found_right or (value and quick(value))):
            continue
        if value is None:
            unset = True
        else:
            # Replacing a value of a dict does not disturb a loop over it.
            given[name] = otherwise(name, value, version)
    if plan is not None and not unset:
        return given
    if unset:
        given = {name: value for name, value in given.items() if value is not None}
    for name in version.required:
        if name not in given:
            raise version.missing_error(name, required_clauses)
    if plan is None:
        _learn(names, version)
    return given


def _learn(names: tuple[str, ...], version: SpecVersion) -> None:
    """Make a plan of the names of an event that is right, if each is remembered as right."""
    if len(version.plans) >= MAX_PLANS or len(names) > MAX_NAMES:
        return
    plan: list[Check] = []
    for name in names:
        spec = version.known_spec(name)
        if spec is None:
            return
        plan.append(spec.check_of(name))
    version.plans[names] = tuple(plan)
