"""The build hook of hatchling that puts compiled modules into the wheel.

hatchling loads this file only if the environment variable HATCH_BUILD_HOOKS_ENABLE is `1`;
otherwise the wheel is pure Python. A compiled module lies beside its source in the wheel, so that
`KPROTO_PURE=1` can select the source.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["CompiledWheelHook"]


class CompiledWheelHook(BuildHookInterface[Any]):
    """Compiles the listed modules and adds them to the wheel, which gets the platform's tag."""

    _folder: Path | None = None

    def dependencies(self) -> list[str]:
        """Returns the packages that the compiler needs; a pure build does not install them."""
        return ["mypy>=2.4,<3", "setuptools>=80"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles in a temporary folder. An editable install stays pure.

        Raises CompileError.
        """
        if version == "editable":
            return
        root = Path(self.root)
        sys.path.insert(0, str(root))  # a build frontend runs the hook outside of the project
        try:
            from tools.setup.mypyc_build import compile_package
        finally:
            sys.path.remove(str(root))
        self._folder = Path(tempfile.mkdtemp(prefix="kproto-wheel-"))
        for path in compile_package(root, self._folder):
            build_data["force_include"][str(self._folder / path)] = path.as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the temporary folder after the wheel is written."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
