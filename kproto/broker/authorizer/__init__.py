"""Who may do what with which resource, as Kafka's StandardAuthorizer decides it. Plain data.

`words` have the numbers of the protocol, `acl` is one ACL and what finds it, `deciding` the rules,
`needs` the table of what each API asks for.
"""

from .acl import Acl, AclFilter
from .acl_types import (
    CLUSTER_NAME,
    DENIED,
    SUPPORTED,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from .required_operations import NEEDS, Need
from .standard_authorizer import Authorizer

__all__ = [
    "CLUSTER_NAME",
    "DENIED",
    "NEEDS",
    "SUPPORTED",
    "Acl",
    "AclFilter",
    "Authorizer",
    "Need",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
]
