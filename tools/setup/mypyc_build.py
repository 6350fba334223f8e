"""Compiles modules of kproto with mypyc, in a copy of the package.

pyproject.toml lists the modules, in the table of the build hook. The wheel's build hook and
`tools.setup.compiled` both compile with this module, which needs only the standard library, mypy
and setuptools.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Final

__all__ = ["C_FUNCTIONS", "CompileError", "compile_package", "listed_modules", "what_is_missing"]

GROUP: Final = "kproto"
"""mypyc puts all compiled code into one library, `kproto__mypyc`, beside the package."""

LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")

#: The C functions that compiled code calls in place of those of `kproto.wire.c_functions`.
C_FUNCTIONS: Final = Path(__file__).with_name("c_functions.h")

_SETUP: Final = """
import os
import sys
from mypyc.build import mypycify
from mypyc.ir.ops import ERR_MAGIC, ERR_NEVER
from mypyc.ir.rtypes import (
    bytes_rprimitive as bytes_,
    int64_rprimitive as i64,
    list_rprimitive as list_,
    none_rprimitive as none,
    object_rprimitive as any_,
)
from mypyc.primitives.registry import function_op
from setuptools import setup
steals_fourth = [False, False, False, True]
functions = {{
    "as_method": ("PyInstanceMethod_New", [any_], any_, ERR_MAGIC, False),
    "compact_int32s": ("kproto_compact_int32s", [any_], any_, ERR_MAGIC, False),
    "crc32c_of": ("kproto_crc32c_of", [bytes_, i64], i64, ERR_NEVER, False),
    "get_slot": ("kproto_get_slot", [any_, any_, any_, i64], any_, ERR_MAGIC, False),
    "headers_in": ("kproto_headers_in", [bytes_, i64, i64, list_], any_, ERR_MAGIC, False),
    "int32s_at": ("kproto_int32s_at", [bytes_, i64, i64], list_, ERR_MAGIC, False),
    "list_descriptor": ("kproto_list_descriptor", [any_, any_, i64, any_], any_, ERR_MAGIC, False),
    "new_object": ("kproto_new_object", [any_], any_, ERR_MAGIC, False),
    "new_untracked": ("kproto_new_untracked", [any_], any_, ERR_MAGIC, False),
    "set_slot": ("kproto_set_slot", [any_, any_, i64, any_], none, ERR_NEVER, steals_fourth),
    "track_when_set": ("kproto_track_when_set", [any_], none, ERR_NEVER, False),
}}
for name, (c_name, arguments, result, error_kind, steals) in functions.items():
    function_op(
        name="kproto.wire.c_functions." + name,
        arg_types=arguments,
        return_type=result,
        c_function_name=c_name,
        error_kind=error_kind,
        steals=steals,
    )
modules = mypycify(
    ["--strict", *sys.argv[1:]], group_name={group!r}, opt_level="3", debug_level="0"
)
include = ["/FI" if os.name == "nt" else "-include", {header!r}]
calls = [] if os.name == "nt" else ["-fno-semantic-interposition"]
for module in modules:
    module.extra_compile_args += include + calls
setup(name="kproto", packages=[], ext_modules=modules, script_args=["build_ext", "--inplace"])
"""


class CompileError(RuntimeError):
    """The modules cannot be compiled; the message names a missing requirement or has the output."""


def listed_modules(root: Path) -> list[str]:
    """Returns the files that the project in `root` compiles, such as `kproto/wire/reading.py`.

    Reads the patterns in pyproject.toml. Raises CompileError for a pattern without a file.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    found: set[str] = set()
    for pattern in hook["modules"]:
        matches = {path.relative_to(root).as_posix() for path in root.glob(pattern)}
        if not matches:
            raise CompileError(f"pyproject.toml lists {pattern!r}, and there is no such file")
        found |= matches
    return sorted(found)


def compile_package(root: Path, folder: Path) -> list[Path]:
    """Compiles the listed modules in `folder`, after it has copied `root`'s package `kproto` there.

    The copy also keeps the sources. Returns the compiled files, relative to `folder`: one per
    module, and the library with their code. Raises CompileError.
    """
    missing = what_is_missing()
    if missing:
        raise CompileError(f"kproto cannot be compiled: {'; '.join(missing)}")
    modules = listed_modules(root)
    shutil.copytree(root / "kproto", folder / "kproto", ignore=LEFT_OUT, dirs_exist_ok=True)
    # mypyc reads settings from its working directory: no setting of the checkout applies.
    command = [sys.executable, "-c", _SETUP.format(group=GROUP, header=str(C_FUNCTIONS)), *modules]
    environment = {**os.environ, "PYTHONPATH": "", "MYPY_CACHE_DIR": str(folder / "build/mypy")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CompileError(f"mypyc failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    shutil.rmtree(folder / "build", ignore_errors=True)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    compiled = [Path(name.removesuffix(".py") + suffix) for name in modules]
    compiled.append(Path(f"{GROUP}__mypyc{suffix}"))
    absent = [str(path) for path in compiled if not (folder / path).is_file()]
    if absent:
        raise CompileError(f"mypyc did not write {', '.join(absent)}")
    return compiled


def what_is_missing() -> list[str]:
    """Returns the missing requirements, with instructions to install them."""
    missing = []
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if os.name != "nt" and shutil.which(compiler) is None:
        missing.append(f"no C compiler {compiler!r} is on the path (Debian: apt-get install gcc)")
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.is_file():
        missing.append(f"there is no {header} (Debian: apt-get install python3-dev)")
    missing += [
        f"{sys.executable} has no {name}: run `make setup`"
        for name in ("mypyc", "setuptools")
        if importlib.util.find_spec(name) is None
    ]
    return missing
