"""`AdminArea`: the base class of the areas of `Admin`, and `LazyCall`, which imports an area."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .requester import AdminRequester

__all__ = ["AdminArea", "LazyCall"]


class AdminArea:
    """Has the calls of one area, which the requester sends."""

    def __init__(self, requester: AdminRequester) -> None:
        self._requester = requester


class LazyCall:
    """A call of `Admin` as a descriptor: its first use imports the module of the area.

    `area` is the name of the class. On a class, the descriptor returns the function of the area.
    """

    __slots__ = ("_area", "_module", "_name")

    def __init__(self, module: str, area: str, name: str) -> None:
        self._module, self._area, self._name = module, area, name

    def __get__(self, admin: AdminArea | None, owner: type[AdminArea]) -> Any:
        area = getattr(import_module(f"{__package__}.{self._module}"), self._area)
        return getattr(area if admin is None else area(admin._requester), self._name)
