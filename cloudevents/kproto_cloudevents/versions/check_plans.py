"""Checks the attributes of an event, with a cached plan if an event had the same names before.

The events of a topic have the same attributes in the same order. A plan has the checks for one
tuple of attribute names. It is learnt from a valid event, so its names are valid and include all
required ones. It checks values exactly as the check without a plan does. The number of plans is
bounded, because producers choose the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from .spec_version import Check, SpecVersion

__all__ = ["MAX_NAMES", "MAX_PLANS", "checked_attributes"]

#: The maximum number of plans per version. If every event had a new order of names, learning a plan
#: for each would double the cost.
MAX_PLANS: Final = 1024
#: A plan is not learnt for more names.
MAX_NAMES: Final = 32


def checked_attributes(
    attributes: dict[str, Any],
    version: SpecVersion,
    otherwise: Callable[[str, Any, SpecVersion], Any],
    *,
    clauses: tuple[str, ...] = (),
    required_clauses: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Returns the set attributes after checking each; `attributes` itself, updated, if all are set.

    A quick check accepts most strings. `otherwise(name, value, version)` checks any other value,
    and returns the value to keep; None means unset. Raises CloudEventError: for an invalid name it
    cites `clauses` of the binding or format, for a missing required attribute `required_clauses`.
    """
    names = tuple(attributes)
    plan = version.plans.get(names)
    checks: Iterable[Check]
    if plan is None:
        # Lazily, so that the first fault in the order of attributes is reported.
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
            # Replacing the value of a key is allowed during iteration over a dict.
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
