"""Fetches jars from Maven Central once, into a folder of the cache.

The caller passes a pom or coordinates. Maven checks each file against its published checksum, and
keeps fetched files in its own repository, so that an interrupted fetch can continue.
"""

from __future__ import annotations

import shutil
import string
from collections.abc import Sequence
from pathlib import Path

from . import java
from .once import finished_at_once, locked
from .programs import FIRST, ProgramError, run_program

__all__ = ["MavenError", "fetch_each", "fetch_jar", "fetch_jars"]

DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
"""Pinned, because Maven chooses another version of the plugin in each of its releases."""

FETCH_TIMEOUT_S = 900.0
"""In seconds. A slow connection needs minutes for up to 260 jars of 176 MB in total."""

POM = """\
<project>
<modelVersion>4.0.0</modelVersion>
<groupId>jars</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<build><plugins><plugin>
<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>
<configuration><artifactItems>{items}
</artifactItems></configuration>
</plugin></plugins></build>
</project>
"""

ITEM = """
<artifactItem><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></artifactItem>"""


class MavenError(RuntimeError):
    """The jars are missing and cannot be fetched; the message has the reason and a remedy."""


def fetch_jars(
    folder: Path, pom: Path, *, name: str, sign: str, otherwise: str, **filled: str
) -> Path:
    """Returns the folder `jars` in `folder` with all jars of a pom; fetches them if missing.

    `pom` is a template; `filled` has the values of its `$words`. `sign` is a pattern of a file
    name: the fetch is successful if such a file exists. Error messages call the jars `name`. If
    Maven is missing, the message ends "install it, or" and `otherwise`.

    Safe if several processes call it at once. Raises `MavenError`.
    """
    jars = folder / "jars"
    if jars.is_dir():
        return jars
    with locked(folder / "lock"):
        if not jars.is_dir():
            written = folder / "pom.xml"
            template = string.Template(pom.read_text(encoding="utf-8"))
            written.write_text(template.substitute(filled), encoding="utf-8")
            with finished_at_once(jars) as unfinished:
                arguments = [
                    f"--file={written}",
                    "-DincludeScope=runtime",
                    f"-DoutputDirectory={unfinished}",
                ]
                said = _run("copy-dependencies", arguments, folder, name, otherwise)
                if not list(unfinished.glob(sign)):
                    raise MavenError(
                        f"Maven fetched {name}, but no {sign} with it; it said:\n{said}"
                    )
    return jars


def fetch_jar(folder: Path, coordinates: str, *, otherwise: str) -> Path:
    """Returns the path of the jar `group:artifact:version` in `folder`; fetches a missing jar.

    Does not fetch the dependencies of the jar. `otherwise` is as in `fetch_jars`. Only one process
    at a time may call this function for a folder. Raises `MavenError`.
    """
    (jar,) = fetch_each(folder, [coordinates], otherwise=otherwise)
    return jar


def fetch_each(folder: Path, wanted: Sequence[str], *, otherwise: str) -> list[Path]:
    """Returns the path of each jar `group:artifact:version` in `folder`, like `fetch_jar`.

    Calls Maven once for all missing jars, because starting Maven takes longer than fetching a jar.
    """
    jars = {each: folder / "{1}-{2}.jar".format(*each.split(":")) for each in wanted}
    missing = [each for each, jar in jars.items() if not jar.exists()]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        pom = folder / "wanted.xml"
        items = "".join(ITEM.format(*each.split(":")) for each in missing)
        pom.write_text(POM.format(items=items), encoding="utf-8")
        arguments = [f"--file={pom}", f"-DoutputDirectory={folder}"]
        said = _run("copy", arguments, folder, ", ".join(missing), otherwise)
        absent = [str(jars[each]) for each in missing if not jars[each].exists()]
        if absent:
            raise MavenError(f"Maven did not leave {', '.join(absent)}; it said:\n{said}")
    return list(jars.values())


def _run(goal: str, arguments: list[str], folder: Path, name: str, otherwise: str) -> str:
    """Runs a goal of Maven's dependency plugin, and returns the output.

    `name` and `otherwise` are for error messages, as in `fetch_jars`. Raises MavenError.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise MavenError(
            f"Maven (mvn) is not on the PATH, and {name} is not in {folder}: install it "
            f"(Debian: apt-get install maven; macOS: brew install maven), or {otherwise}"
        )
    command = [maven, "--batch-mode", "--quiet", "--strict-checksums"]
    try:
        return run_program(
            [*command, f"{DEPENDENCY_PLUGIN}:{goal}", *arguments],
            timeout_s=FETCH_TIMEOUT_S,
            folder=folder,
            environment=java.environment(),
            shown=FIRST,
        )
    except (ProgramError, java.JavaNotFoundError) as error:
        raise MavenError(f"Maven could not fetch {name}: {error}") from error
