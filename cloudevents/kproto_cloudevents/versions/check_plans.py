"""Checks the attributes of an event, with a plan if an earlier event had the same names in order.

The events of a topic usually have the same attributes in the same order. A plan has the checks for
one tuple of attribute names. A plan is learned from a valid event, so its names are valid and
include all required names. A plan checks values exactly as the check without a plan does. The
number of plans is bounded, because producers choose the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from .spec_version import Check, SpecVersion

__all__ = ["MAX_NAMES", "MAX_PLANS", "checked_attributes"]

#: The maximum number of plans per version. If every event had a new order of names, learning a plan
#: for each would double the cost.
MAX_PLANS: Final = 1024
#: The maximum number of names in a plan. No plan is learned for more names.
MAX_NAMES: Final = 32


def checked_attributes(
    attributes: dict[str, Any],
    version: SpecVersion,
    otherwise: Callable[[str, Any, SpecVersion], Any],
    *,
    clauses: tuple[str, ...] = (),
    required_clauses: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Checks each attribute, and returns the attributes that are set; a value of None means unset.

    Updates `attributes` in place, and returns it if all attributes are set. A quick check accepts
    most strings. `otherwise(name, value, version)` checks any other value, and returns the value to
    keep. Raises CloudEventError if a name is invalid (the error cites `clauses`), if a required
    attribute is missing (the error cites `required_clauses`), and as `otherwise` does.
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
    # Both have the same length; `strict` would add a tenth of the time.
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
    """Stores the checks of the values of an event that has the attributes `names`, as a plan.

    Stores no plan if a name is not cached as valid, or if a limit is reached.
    """
    if len(version.plans) >= MAX_PLANS or len(names) > MAX_NAMES:
        return
    plan: list[Check] = []
    for name in names:
        spec = version.known_spec(name)
        if spec is None:
            return
        plan.append(spec.check_of(name))
    version.plans[names] = tuple(plan)
