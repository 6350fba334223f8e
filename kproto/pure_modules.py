"""Makes Python import kproto's modules from source, even if compiled modules are beside it.

`import kproto` imports this module only if the environment variable KPROTO_PURE is set.
"""

from __future__ import annotations

import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["select"]


class _SourceFinder:
    """Finds the source of a module in `kproto`; leaves other modules to the other finders."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the spec of the module's `.py` file; None if no folder in `path` has one."""
        package = __package__ or ""
        if path is None or not fullname.startswith(f"{package}."):
            return None
        for folder in path:
            finder = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
            spec = finder.find_spec(fullname)
            if spec is not None and spec.loader is not None:
                return spec
        return None


def select() -> None:
    """Puts the finder in front of Python's finders; a second call has no effect."""
    if _SourceFinder not in sys.meta_path:
        sys.meta_path.insert(0, _SourceFinder)
