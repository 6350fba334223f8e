"""Checks the attributes of an event, with a cached plan if an event had the same names before.

The events of a topic have the same attributes in the same order. A plan has the checks for such a
tuple of names. It is learnt from a valid event, so that its names are valid and no required one is
missing; it checks values exactly as the check without a plan does. The number of plans is bounded,
because the input chooses the names. This module does not know the source of the attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from .spec_version import Check, SpecVersion

__all__ = ["MAX_NAMES", "MAX_PLANS", "checked_attributes"]

#: The maximum number of plans per version: learning a plan for each new order of names would double
#: the cost.
MAX_PLANS: Final = 1024
#: Tuples of more names have no plan.
MAX_NAMES: Final = 32


def checked_attributes(
    attributes: dict[str, Any],
    version: SpecVersion,
    otherwise: Callable[[str, Any, SpecVersion], Any],
    *,
    clauses: tuple[str, ...] = (),
    required_clauses: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Returns the attributes that are set, checked: `attributes` itself, updated, if all are set.

    A quick check accepts the usual text. `otherwise(name, value, version)` checks any other value
    that is not None (unset), and returns the value to keep. Raises CloudEventError, which cites
    `clauses` of the binding or format, for an invalid name, and `required_clauses` for a missing
    required attribute.
    """
    names = tuple(attributes)
    plan = version.plans.get(names)
    checks: Iterable[Check]
    if plan is None:
        # Checks the names in order, so that the first fault is reported.
        checks = (version.checked_spec(name, name, clauses).check_of(name) for name in names)
    else:
        checks = plan
    unset = False
    # Both have the same length; `strict` would cost a tenth.
    for value, (name, valid_values, quick) in zip(attributes.values(), checks):  # noqa: B905
        if type(value) is str and (value in valid_values or (value and quick(value))):
            continue
        if value is None:
            unset = True
        else:
            # Replacing a value of a dict does not disturb the loop over it.
            attributes[name] = otherwise(name, value, version)
    if plan is not None and not unset:
        return attributes
    if unset:
        attributes = {name: value for name, value in attributes.items() if value is not None}
    for name in version.required:
        if name not in attributes:
            raise version.missing_error(name, required_clauses)
    if plan is None:
        _learn(names, version)
    return attributes


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
