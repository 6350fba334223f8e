"""All groups of a cluster, by id. Knows no coordinator: who asks has found out who that is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from ..lines import one_line
from .group import Group
from .group_metadata import GroupMetadata
from .limits import GroupLimits
from .moment import Moment
from .offsets import Offsets

__all__ = ["Groups"]

logger = logging.getLogger("kproto.broker")


class Groups:
    """The groups that coordinators have at hand; `store` is called with each that changes.

    A group is stored when its first member makes it, and when it is stable or empty. `store` raises
    BrokerResponseError where that cannot be written.
    """

    def __init__(self, limits: GroupLimits) -> None:
        self.store: Callable[[Group, Moment], None] = _forget
        self._limits = limits
        self._groups: dict[str, Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all groups, in the order in which they were made."""
        return tuple(self._groups)

    def find(self, group_id: str, now: Moment) -> Group | None:
        """The group as it is now; None where there is none."""
        group = self._groups.get(group_id)
        if group is not None:
            group.advance(now)
        return group

    def find_or_create(self, group_id: str, now: Moment, *, keep: bool) -> Group:
        """The same; an empty one where there was none, which is stored for `keep`.

        As in Kafka, a group is stored before its first member joins, and not because somebody
        commits offsets, which are stored themselves. Raises BrokerResponseError where that cannot
        be written; then there is no such group.
        """
        group = self.find(group_id, now)
        if group is None:
            group = self._made(group_id, now)
            if keep:
                self._stored(group, now)
            self._groups[group_id] = group
            logger.info("group %s is new", one_line(group_id))
        return group

    def restore(
        self, group_id: str, stored: GroupMetadata | None, offsets: Offsets, now: Moment
    ) -> None:
        """Take a group as the log says it; without metadata it is one of simple consumers."""
        group = self._groups[group_id] = self._made(group_id, now)
        group.offsets = offsets
        if stored is not None:
            group.restore(stored, now)

    def all(self, now: Moment) -> Iterator[Group]:
        """Every group as it is now, in the order in which they were made."""
        for group_id in self.ids:
            group = self.find(group_id, now)
            if group is not None:
                yield group

    def delete(self, group: Group) -> None:
        """Forget a group, in which nobody is any more."""
        del self._groups[group.group_id]
        group.bury()
        logger.info("group %s is deleted", one_line(group.group_id))

    def unload(self, group_id: str) -> None:
        """The coordinator of a group is one no more; the next reads the log."""
        self._groups.pop(group_id).unload()

    def _made(self, group_id: str, now: Moment) -> Group:
        return Group(group_id, self._limits, self._stored, now)

    def _stored(self, group: Group, now: Moment) -> None:
        self.store(group, now)


def _forget(group: Group, now: Moment) -> None:
    """Where nothing is stored."""
