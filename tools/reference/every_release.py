"""Compares generated packages with Kafka's own classes, for every release that has definitions.

    python -m tools.reference.every_release 2.2.2 3.7.2

For each release, the program imports the definitions from the jars of the release, generates a
package from them, and compares each message in each version with the class that Kafka generated
from the same definitions: the bytes, and the JSON if the release has JSON converters (since 2.6).
Prints a line of JSON for each release, and exits with 1 if there is a difference.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from kproto_codegen.cli import main as generate_main
from kproto_codegen.releases.importer import read_releases
from kproto_codegen.releases.release import write_release

from kproto.fuzz.judging import without_records
from kproto.fuzz.packages import message_class
from kproto.messages.base import Message
from kproto.protocol.message_classes import definitions_in
from kproto.schema.layout import layout
from kproto.testing.instances import Fill, instance, instances, random_instances
from kproto.wire.errors import KprotoError
from tools.kafka.jars import CACHE
from tools.setup import java
from tools.setup.javac import CompilerError, compile_java
from tools.setup.maven import MavenError, fetch_each
from tools.setup.once import locked

from .classes import ReferenceUnavailableError
from .process import Answer, JavaProgramOperation, KafkaJavaProgram, Outcome, question

__all__ = ["KNOWN", "RELEASES", "ReleaseResult", "compare_release", "known_of", "main"]

#: The last release of each line that has definitions.
RELEASES: Final = (
    *("2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2", "3.0.2", "3.1.2", "3.2.3"),
    *("3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2"),
    *("4.0.1", "4.1.1", "4.2.0", "4.3.0", "4.4.0"),
)

#: The artifacts with definitions, and the first release that has each of them.
_ARTIFACTS: Final = (
    ("kafka-clients", (2, 2)),
    ("kafka_2.13", (2, 4)),
    ("kafka-raft", (2, 8)),
    ("kafka-metadata", (2, 8)),
    ("kafka-storage", (3, 0)),
    ("kafka-group-coordinator", (3, 6)),
    ("kafka-share-coordinator", (4, 0)),
    ("kafka-transaction-coordinator", (4, 0)),
)

#: The libraries that the generated classes and their JSON converters need.
_LIBRARIES: Final = (
    "com.fasterxml.jackson.core:jackson-databind:2.15.4",
    "com.fasterxml.jackson.core:jackson-core:2.15.4",
    "com.fasterxml.jackson.core:jackson-annotations:2.15.4",
    "org.slf4j:slf4j-api:1.7.36",
)


class KnownDifference(NamedTuple):
    """A fault of Kafka's classes, from the release `first` to `last`.

    `reason` is a regular expression for the text of the difference.
    """

    first: str
    last: str
    reason: str
    why: str


KNOWN: Final = (
    KnownDifference(
        "2.2.2",
        "2.2.2",
        r"UNWRITABLE .*Attempted to write a non-default (transactionalId|listener) at version",
        "the class refuses the default of a field that the version lacks",
    ),
    KnownDifference(
        "2.7.2",
        "2.7.2",
        r"REFUSED .*Cannot read records from reader of class",
        "only a class of Kafka's client can read the records of a FetchResponse",
    ),
    KnownDifference(
        "2.7.2",
        "3.4.1",
        r"reading JSON: .*REFUSED .*expected Base64-encoded binary data",
        "the converter reads bytes only from binary nodes, which no JSON text gives",
    ),
)
"""The differences that are faults of Kafka's classes, not of the definitions."""

#: The number of different instances of a message version to compare, and of random ones to create.
_SAMPLES: Final = 30
_DRAWS: Final = 100

_SHOWN: Final = 300
_OTHERWISE: Final = "compare the releases of which the jars are in the cache"


@dataclass(slots=True)
class ReleaseResult:
    """The result for a release: numbers of comparisons, and the differences as text."""

    release: str
    versions: int = 0
    instances: int = 0
    #: The number of message versions whose JSON was compared, too.
    with_json: int = 0
    differences: list[str] = field(default_factory=list)
    #: The number of differences of each kind in `KNOWN`, by `why`.
    known: dict[str, int] = field(default_factory=dict)

    def differ(self, text: str) -> None:
        """Adds a difference, or counts it if it is known."""
        for each in known_of(self.release):
            if re.search(each.reason, text, re.DOTALL):
                self.known[each.why] = self.known.get(each.why, 0) + 1
                return
        self.differences.append(text)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def known_of(release: str) -> list[KnownDifference]:
    """Returns the known differences of a release."""
    at = _numbers(release)
    return [each for each in KNOWN if _numbers(each.first) <= at <= _numbers(each.last)]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


class _ReleaseProgram(KafkaJavaProgram):
    """The Java program that finds the generated classes of any release by reflection."""

    def _command(self) -> list[str]:
        jars = _jars(self.release)
        home = java.java_home()
        source = Path(__file__).with_name("java_releases") / "Generated.java"
        digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
        classes = CACHE.parent / "reference" / f"every-release-{digest}"
        with locked(classes.parent / "lock"):
            if not classes.is_dir():
                try:
                    compile_java(home, [source], classes, cache=classes.parent)
                except CompilerError as error:
                    raise ReferenceUnavailableError(str(error)) from error
        path = os.pathsep.join(map(str, [classes, *jars]))
        options = ["-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m"]
        return [str(home / "bin" / "java"), *options, "-classpath", path, "Generated"]


def _jars(release: str) -> list[Path]:
    """Returns the jars with definitions and generated classes, and the libraries they need."""
    names = [name for name, first in _ARTIFACTS if _numbers(release) >= first]
    wanted = [f"org.apache.kafka:{name}:{release}" for name in names]
    try:
        return fetch_each(
            CACHE / release / "definitions", [*wanted, *_LIBRARIES], otherwise=_OTHERWISE
        )
    except MavenError as error:
        raise ReferenceUnavailableError(str(error)) from error


def compare_release(release: str) -> ReleaseResult:
    """Generates a package from the definitions of a release, and compares all its messages.

    Raises ReferenceUnavailableError if Java, Maven or a jar is missing, and DefinitionError if the
    definitions cannot be read.
    """
    jars = [jar for jar in _jars(release) if jar.name.startswith("kafka")]
    package = f"kafka_{release.replace('.', '_')}"
    result = ReleaseResult(release)
    with tempfile.TemporaryDirectory() as folder, _ReleaseProgram(release) as program:
        (imported,) = read_releases(jars, release=release).releases
        result.differences += [f"not imported: {error}" for error in imported.errors]
        write_release(imported.release, Path(folder) / "schemas")
        arguments = ["generate", "--schemas", f"{folder}/schemas", "--package", package]
        sys.stdout, printed = sys.stderr, sys.stdout
        try:
            if generate_main([*arguments, "--out", f"{folder}/{package}"]):
                raise RuntimeError(f"no package was generated for {release}")
        finally:
            sys.stdout = printed
        sys.path.insert(0, folder)
        try:
            definitions = definitions_in(importlib.import_module(package))
            for name in sorted(definitions):
                for version in definitions[name].valid_versions:
                    _compare(message_class(package, name), version, program, result)
        finally:
            sys.path.remove(folder)
    return result


def _compare(
    message: type[Message], version: int, program: KafkaJavaProgram, result: ReleaseResult
) -> None:
    """Compares the bytes and the JSON of one message version."""
    name = message._definition().name
    samples = _samples(message, version)
    result.versions += 1
    result.instances += len(samples)

    def ask(operation: JavaProgramOperation, contents: Sequence[bytes]) -> list[Answer]:
        return list(program.ask(question(operation, name, version, each) for each in contents))

    def differ(check: str, ours: str, answer: Answer, show: Callable[[bytes], str]) -> None:
        theirs = show(answer.data) if answer.accepted else answer.data.decode(errors="replace")
        text = f"{name} v{version} of {result.release}, {check}: kproto {ours[:_SHOWN]!r}, Kafka "
        result.differ(f"{text}{answer.outcome.name} {theirs[:_SHOWN]!r}")

    for data, answer in zip(samples, ask(JavaProgramOperation.REWRITE, [*samples]), strict=True):
        if answer != Answer(Outcome.DONE, data, len(data)):
            differ("bytes", data.hex(), answer, bytes.hex)
    if not _has_json(program, name, version, next(iter(samples))):
        return
    result.with_json += 1
    shape = layout(message._definition(), version)
    texts: dict[str, None] = {}
    answers = ask(JavaProgramOperation.TO_JSON, [*samples])
    for sample, answer in zip(samples.values(), answers, strict=True):
        ours = sample.to_json(version)
        texts[json.dumps(ours)] = None
        if not answer.accepted:
            differ("JSON", json.dumps(ours), answer, bytes.decode)
            continue
        texts[answer.data.decode()] = None
        if _sorted(without_records(shape, ours)) != _sorted(json.loads(answer.data)):
            differ("JSON", json.dumps(ours), answer, bytes.decode)
    contents = [text.encode() for text in texts]
    for text, answer in zip(texts, ask(JavaProgramOperation.FROM_JSON, contents), strict=True):
        try:
            data = message.from_json(json.loads(text), version).encode(version)
        except KprotoError as error:
            data = f"refused: {error}".encode()
        if not answer.accepted or answer.data != data:
            differ("reading JSON", f"{text}: {data.hex()}", answer, bytes.hex)


def _has_json(program: KafkaJavaProgram, name: str, version: int, data: bytes) -> bool:
    (answer,) = program.ask([question(JavaProgramOperation.TO_JSON, name, version, data)])
    return answer.accepted or not answer.data.endswith(b"no JSON converter")


def _samples(message: type[Message], version: int) -> dict[bytes, Message]:
    found: dict[bytes, Message] = {}
    for built in chain(_built(message, version), _drawn(message, version)):
        found.setdefault(built.encode(version), built)
        if len(found) == _SAMPLES:
            break
    return found


def _built(message: type[Message], version: int) -> Iterator[Message]:
    yield from instances(message, version)
    yield instance(message, version, Fill.LONG)


def _drawn(message: type[Message], version: int) -> Iterator[Message]:
    return islice(random_instances(message, version), _DRAWS)


def _sorted(node: Any) -> str:
    return json.dumps(node, sort_keys=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares the named releases, all by default, and prints the results; returns 1 if differ."""
    is_equal = True
    for release in (sys.argv[1:] if arguments is None else arguments) or RELEASES:
        result = compare_release(release)
        is_equal &= not result.differences
        print(json.dumps(result.to_json()), flush=True)
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
