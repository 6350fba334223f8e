"""Groups of consumers, as a coordinator keeps them. Plain data: times are passed in, nobody waits.

`states` is the table of what leads to what, `group` carries it out on the members of one group
(`roster`) in its `phases`, `groups` are all of a cluster. `asked` is what members want, `answers`
what they wait for, `kept` what outlives a coordinator. Groups of the consumer protocol (KIP-848)
are in `consumer`; `migration` makes one kind of the other.
"""

from .answers import Awaited, JoinAnswer, SyncAnswer
from .asked import Joining, Leaving, Syncing
from .classic_group import Group
from .classic_group_state import GroupState
from .clock_reading import Moment
from .consumer import ConsumerGroup, ConsumerLimits, MigrationPolicy
from .group_config import GroupLimits
from .groups import AnyGroup, Groups
from .members import Member, MemberProtocol

__all__ = [
    "AnyGroup",
    "Awaited",
    "ConsumerGroup",
    "ConsumerLimits",
    "Group",
    "GroupLimits",
    "GroupState",
    "Groups",
    "JoinAnswer",
    "Joining",
    "Leaving",
    "Member",
    "MemberProtocol",
    "MigrationPolicy",
    "Moment",
    "SyncAnswer",
    "Syncing",
]
