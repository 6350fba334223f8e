"""Checks the attributes of an event, by a cached plan if their names occurred before.

The events of a topic have the same attributes in the same order. A plan has the checks for such a
tuple of names, looked up once. It is learnt from a valid event, so that its names are valid and no
required one is missing; it checks the values like the way without a plan. Input chooses the names,
so plans are bounded. This module does not know where the attributes come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from .spec_version import Check, SpecVersion

__all__ = ["MAX_NAMES", "MAX_PLANS", "checked_attributes"]

#: At most this many plans per version are learnt: ever new orders of names would cost twice.
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
    """Returns the attributes that are set, checked; `given` itself, changed, if all are set.

    A quick check accepts the usual text. `otherwise(name, value, version)` checks any other value
    that is not None (unset), and returns the value to keep. Raises CloudEventError, which cites
    `clauses` of the binding or format, for an invalid name, and `required_clauses` for a missing
    required attribute.
    """
    names = tuple(given)
    plan = version.plans.get(names)
    checks: Iterable[Check]
    if plan is None:
        # One by one, so that the first fault is reported first.
        checks = (version.checked_spec(name, name, clauses).check_of(name) for name in names)
    else:
        checks = plan
    unset = False
    # Both have the same length; `strict` would cost a tenth.
    for value, (name, found_right, quick) in zip(given.values(), checks):  # noqa: B905
        if type(value) is str and (value in found_right or (value and quick(value))):
            continue
        if value is None:
            unset = True
        else:
            # Replacing a value of a dict does not disturb the loop over it.
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
    """Learns a plan for the names of a valid event, if each name is cached as valid."""
    if len(version.plans) >= MAX_PLANS or len(names) > MAX_NAMES:
        return
    plan: list[Check] = []
    for name in names:
        spec = version.known_spec(name)
        if spec is None:
            return
        plan.append(spec.check_of(name))
    version.plans[names] = tuple(plan)
