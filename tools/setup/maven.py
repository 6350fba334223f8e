"""Fetches jars of Maven Central, once, into a folder of the cache.

The only place that runs Maven. Knows nothing of the jars: the caller passes the pom or the
coordinates. Maven checks each file against its published checksum, and keeps fetched files in its
own repository, so that an interrupted fetch continues from there.
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
"""Pinned: without a version Maven uses its own release's default."""

FETCH_TIMEOUT_S = 900.0
"""Up to 260 jars and 176 MB, on a slow line."""

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
    """Returns `folder`/jars with every jar that a pom names; fetches them if it is missing.

    `pom` is a template whose `$words` are `filled`. `sign` is the pattern of a file name that
    exists after a successful fetch; the folder gets its name only then. `name` is the name of the
    jars in messages, `otherwise` the alternative to installing Maven.

    Safe in several processes at once. Raises `MavenError`.
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
    """Returns the one jar at `group:artifact:version` in `folder`; fetches it if it is missing.

    Its dependencies are not fetched. `otherwise` is as for `fetch_jars`. The caller ensures that
    one process at a time does this in a folder. Raises `MavenError`.
    """
    (jar,) = fetch_each(folder, [coordinates], otherwise=otherwise)
    return jar


def fetch_each(folder: Path, wanted: Sequence[str], *, otherwise: str) -> list[Path]:
    """Returns the jar of each `group:artifact:version`, like `fetch_jar`.

    One call of Maven fetches all missing jars, because its start takes longer than a jar.
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
    """Runs a goal of the dependency plugin; returns Maven's output."""
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
