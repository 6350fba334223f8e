"""Tests reading error codes from sources, and from class files that `class_bytes` builds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_codegen.error_code import ErrorCode
from kproto_codegen.errors import DefinitionError
from kproto_codegen.releases.classfile import ClassFile, ClassFileError, ConstructorReference
from kproto_codegen.releases.error_enum import (
    ERRORS_CLASS,
    ERRORS_SOURCE,
    error_codes_of_classes,
    error_codes_of_sources,
)

from tests.support.committed_releases import committed_release

from .class_bytes import Constant, enum_class, plain_class

ENUM = "org/apache/kafka/common/protocol/Errors"
EXCEPTIONS = "org/apache/kafka/common/errors/"
RETRIABLE = EXCEPTIONS + "RetriableException"

CONSTANTS = [
    Constant("BROKEN", -1, "Broken.", EXCEPTIONS + "ApiException"),
    Constant("NONE", 0, None, None),
    Constant("BUSY", 5, "Busy.", EXCEPTIONS + "BusyException"),
    Constant("LARGE", 100, "Large.", EXCEPTIONS + "LargeException"),
    Constant("LARGER", 1000, "Larger.", RETRIABLE),
    Constant("LARGEST", 40000, "Largest.", EXCEPTIONS + "GoneException"),
]

CLASSES = {
    ERRORS_CLASS: enum_class(ENUM, CONSTANTS),
    f"{EXCEPTIONS}ApiException.class": plain_class(EXCEPTIONS + "ApiException", "java/lang/X"),
    f"{RETRIABLE}.class": plain_class(RETRIABLE, EXCEPTIONS + "ApiException"),
    f"{EXCEPTIONS}BusyException.class": plain_class(EXCEPTIONS + "BusyException", EXCEPTIONS + "M"),
    f"{EXCEPTIONS}M.class": plain_class(EXCEPTIONS + "M", RETRIABLE),
    f"{EXCEPTIONS}LargeException.class": plain_class(EXCEPTIONS + "L", EXCEPTIONS + "ApiException"),
}

EXPECTED = [
    ErrorCode("BROKEN", -1, retriable=False),
    ErrorCode("NONE", 0, retriable=False),
    ErrorCode("BUSY", 5, retriable=True),
    ErrorCode("LARGE", 100, retriable=False),
    ErrorCode("LARGER", 1000, retriable=True),
    ErrorCode("LARGEST", 40000, retriable=False),
]


def test_only_public_methods_are_told() -> None:
    # The only method of the class is its static initializer, which is not public.
    assert ClassFile(CLASSES[ERRORS_CLASS]).public_methods == ()


def test_a_class_file_tells_its_constants() -> None:
    constants = ClassFile(CLASSES[ERRORS_CLASS]).enum_constants()
    assert [entry.name for entry in constants] == [entry.name for entry in CONSTANTS]
    assert constants[2].arguments == (
        5,
        "Busy.",
        ConstructorReference(EXCEPTIONS + "BusyException"),
    )
    assert constants[1].arguments == (0, None, None)


def test_a_class_file_tells_its_superclass() -> None:
    assert ClassFile(plain_class("a/B", "a/C")).superclass == "a/C"
    assert ClassFile(plain_class("java/lang/Object", None)).superclass is None


def test_error_codes_of_classes() -> None:
    assert error_codes_of_classes(CLASSES.get, file="some.jar") == EXPECTED


def test_exceptions_that_descend_from_each_other_end() -> None:
    classes = {
        **CLASSES,
        f"{EXCEPTIONS}M.class": plain_class(EXCEPTIONS + "M", EXCEPTIONS + "BusyException"),
    }
    codes = error_codes_of_classes(classes.get, file="some.jar")
    assert [entry.name for entry in codes if entry.retriable] == ["LARGER"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "has no org/apache/kafka/common/protocol/Errors.class"),
        (b"", "no readable class file"),
        (b"PK\x03\x04" * 9, "does not begin with 0xCAFEBABE"),
        (plain_class(ENUM, "java/lang/Enum"), "has no static initialiser"),
        (enum_class(ENUM, []), "could not be read: 0 constants found"),
        (
            enum_class(ENUM, CONSTANTS[:2], declared=["BROKEN", "NONE", "BUSY"]),
            "has 3 constants; its static initialiser shows 2 of them",
        ),
        (enum_class(ENUM, [CONSTANTS[0], CONSTANTS[2]]), "could not be read: 2 constants found"),
        (
            enum_class(ENUM, [*CONSTANTS, Constant("AGAIN", 5, None, None)]),
            "could not be read: 7 constants found",
        ),
    ],
)
def test_classes_that_cannot_be_read(data: bytes | None, reason: str) -> None:
    classes = {**CLASSES, ERRORS_CLASS: data}
    with pytest.raises(DefinitionError) as caught:
        error_codes_of_classes(classes.get, file="some.jar")
    assert reason in str(caught.value)
    assert "some.jar" in str(caught.value)


@given(st.integers(0, len(CLASSES[ERRORS_CLASS]) - 1), st.integers(0, 255), st.booleans())
def test_broken_class_files_only_raise_class_file_errors(at: int, byte: int, cut: bool) -> None:
    whole = CLASSES[ERRORS_CLASS]
    broken = whole[:at] if cut else whole[:at] + bytes([byte]) + whole[at + 1 :]
    try:
        constants = ClassFile(broken).enum_constants()
    except ClassFileError:
        return
    assert len(constants) == len(CONSTANTS)


SOURCE = """
/* MADE_UP(9, "in a comment", BusyException::new), */
public enum Errors {
    BROKEN(-1, "Broken: a (bracket), a \\"quote\\".",
            ApiException::new),
    NONE(0, null, message -> null),
    // GONE(7, "no longer", GoneException::new),
    BUSY(5, "Busy, " +
            "and so on; please // wait.", BusyException::new),
    LARGE(100, "Large.", LargeException::new),
    LARGER(1000, "Larger.", RetriableException::new),
    LARGEST(40000, "Largest.", GoneException::new);

    private static final Logger log = LoggerFactory.getLogger(Errors.class);
    Errors(int code, String text, Function<String, ApiException> builder) { }
}
"""

SOURCES = {
    ERRORS_SOURCE: SOURCE,
    **{
        f"clients/src/main/java/{EXCEPTIONS}{name}.java": f"public class {name} extends {parent} {{"
        for name, parent in {
            "ApiException": "KafkaException",
            "RetriableException": "ApiException",
            "M": "RetriableException",
            "BusyException": "M",
            "LargeException": "ApiException",
        }.items()
    },
}


def test_error_codes_of_sources() -> None:
    assert error_codes_of_sources(SOURCES.get, file="tree") == EXPECTED


def test_sources_that_cannot_be_read() -> None:
    with pytest.raises(DefinitionError, match="has no clients/src/main/java"):
        error_codes_of_sources(dict[str, str]().get, file="tree")
    with pytest.raises(DefinitionError, match="0 constants found"):
        error_codes_of_sources({ERRORS_SOURCE: "enum Errors {}"}.get, file="tree")


@pytest.mark.parametrize(
    ("release", "codes", "retriable"), [("3.9.2", 129, 31), ("4.4.0", 138, 32)]
)
@pytest.mark.slow
def test_the_committed_error_codes(release: str, codes: int, retriable: int) -> None:
    entries = committed_release(release).error_codes
    assert (len(entries), sum(entry.retriable for entry in entries)) == (codes, retriable)
    by_name = {entry.name: entry for entry in entries}
    assert by_name["UNKNOWN_SERVER_ERROR"].code == -1
    assert by_name["NONE"].code == 0
    assert by_name["NOT_LEADER_OR_FOLLOWER"] == ErrorCode(
        "NOT_LEADER_OR_FOLLOWER", 6, retriable=True
    )
    assert by_name["UNSUPPORTED_VERSION"] == ErrorCode("UNSUPPORTED_VERSION", 35, retriable=False)


JSHELL = """
for (var e : org.apache.kafka.common.protocol.Errors.values()) System.out.println("= " + e.name()
    + " " + e.code() + " "
    + (e.exception() instanceof org.apache.kafka.common.errors.RetriableException));
/exit
"""


@pytest.mark.kafka
@pytest.mark.exhaustive
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_java_says_the_same(release: str, tmp_path: Path) -> None:
    """The committed error codes must equal the errors of Kafka's enum, as JShell prints them.

    Compares name, code and retriability.
    """
    from tests.support.availability import not_available
    from tools.kafka import KafkaJarsError, resolve_jars

    shell = shutil.which("jshell")
    if shell is None:
        not_available("error codes against Java", "jshell is not on the PATH", "a JDK")
    try:
        jars = resolve_jars(release)
    except KafkaJarsError as error:
        not_available("error codes against Java", error)
    script = tmp_path / "errors.jsh"
    script.write_text(JSHELL)
    classes = ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    run = subprocess.run(
        [shell, "--class-path", classes, "-s", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = [line[2:] for line in run.stdout.splitlines() if line.startswith("= ")]
    ours = [
        f"{entry.name} {entry.code} {str(entry.retriable).lower()}"
        for entry in committed_release(release).error_codes
    ]
    assert sorted(said) == sorted(ours)
