"""Evaluates ACLs as Kafka's StandardAuthorizer does.

`acl_types` has the codes of the protocol, and tables by resource type. `acl` defines ACLs and
filters of ACLs. `standard_authorizer` implements the rules. `required_operations` lists the
operations that each API requires.
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
