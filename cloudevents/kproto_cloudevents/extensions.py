"""The public import path of typed extensions.

`event.extensions` defines the names.
"""

from __future__ import annotations

from .event.extensions import (
    DATAREF,
    DISTRIBUTED_TRACING,
    DOCUMENTED,
    PARTITIONING,
    SAMPLED_RATE,
    SEQUENCE,
    Extension,
    ExtensionAttribute,
    ExtensionRegistry,
)

__all__ = [
    "DATAREF",
    "DISTRIBUTED_TRACING",
    "DOCUMENTED",
    "PARTITIONING",
    "SAMPLED_RATE",
    "SEQUENCE",
    "Extension",
    "ExtensionAttribute",
    "ExtensionRegistry",
]
