"""Typed extensions, by the name under which they are to be imported.

The names are those of `event.extensions`, where they stand.
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
