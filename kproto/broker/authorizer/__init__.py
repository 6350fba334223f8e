"""Who may do what with which resource, as Kafka's StandardAuthorizer decides it. Plain data.

`words` have the numbers of the protocol, `acl` is one ACL and what finds it, `deciding` the rules,
`needs` the table of what each API asks for.
"""

from .acl import Acl, AclFilter
from .acl_types import (
    AUTHORIZATION_ERRORS,
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from .required_operations import REQUIRED_OPERATIONS, RequiredOperation
from .standard_authorizer import Authorizer

__all__ = [
    "AUTHORIZATION_ERRORS",
    "CLUSTER_NAME",
    "REQUIRED_OPERATIONS",
    "SUPPORTED_OPERATIONS",
    "Acl",
    "AclFilter",
    "Authorizer",
    "Operation",
    "PatternType",
    "Permission",
    "RequiredOperation",
    "ResourceType",
]
