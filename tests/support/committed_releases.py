"""Reads the definitions of Kafka's releases in schemas/ once in a process."""

from __future__ import annotations

from functools import cache

from kproto_codegen.releases.release import Release, load_release

from .environment import ROOT

__all__ = ["committed_release"]


@cache
def committed_release(name: str) -> Release:
    """Returns a release from schemas/, e.g. "4.4.0"; reading and checking it takes a second."""
    return load_release(ROOT / "schemas" / name)
