"""Groups of consumers, as a coordinator keeps them. Plain data: times are passed in, nobody waits.

`states` is the table of what leads to what, `group` carries it out on the members of one group
(`roster`) in its `phases`, `groups` are all of a cluster. `asked` is what members want, `answers`
what they wait for, `kept` what outlives a coordinator.
"""

from .answers import Awaited, JoinAnswer, SyncAnswer
from .asked import Joining, Leaving, Syncing
from .group import Group
from .groups import Groups
from .limits import GroupLimits
from .members import Member, MemberProtocol
from .moment import Moment
from .states import GroupState

__all__ = [
    "Awaited",
    "Group",
    "GroupLimits",
    "GroupState",
    "Groups",
    "JoinAnswer",
    "Joining",
    "Leaving",
    "Member",
    "MemberProtocol",
    "Moment",
    "SyncAnswer",
    "Syncing",
]
