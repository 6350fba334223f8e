"""Tests that kproto parses .properties and JAAS configs as Java does, and has all config names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.security.jaas import parse_jaas
from kproto.security.properties_file import parse_properties
from kproto.wire.errors import ConfigurationError
from tests.support.availability import not_available
from tools.properties import __main__ as names
from tools.properties.java_names import LIBRARIES, names_of_java
from tools.properties.librdkafka_names import names_of_librdkafka
from tools.releases.jars import CACHE, clients_jar
from tools.setup.java import JavaNotFoundError, java_home
from tools.setup.javac import CompilerError, compile_java
from tools.setup.maven import MavenError, fetch_jar
from tools.setup.once import locked
from tools.setup.peers import PeersError

pytestmark = pytest.mark.reference

#: Prints the properties of the text in each input line; all texts are in hexadecimal UTF-16.
READER = r"""
import java.io.*;
import java.util.*;
public final class Reader16 {
    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            StringBuilder text = new StringBuilder();
            for (int at = 0; at < line.length(); at += 4) {
                text.append((char) Integer.parseInt(line.substring(at, at + 4), 16));
            }
            Properties found = new Properties();
            StringBuilder answer = new StringBuilder();
            try {
                found.load(new StringReader(text.toString()));
                for (String name : new TreeSet<>(found.stringPropertyNames())) {
                    answer.append(hex(name)).append('=').append(hex(found.getProperty(name)));
                    answer.append(' ');
                }
            } catch (IllegalArgumentException error) {
                answer.append("refused");
            }
            System.out.println(answer.toString().trim());
            System.out.flush();
        }
    }

    private static String hex(String text) {
        StringBuilder hex = new StringBuilder();
        for (char each : text.toCharArray()) {
            hex.append(String.format("%04x", (int) each));
        }
        return hex.toString();
    }
}
"""

#: Prints the options of the sasl.jaas.config in each input line, which a class of Kafka's clients
#: parses; the option with the empty name is the login module.
JAAS_READER = r"""
import java.io.*;
import java.lang.reflect.Constructor;
import java.util.*;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
public final class Jaas16 {
    public static void main(String[] arguments) throws Exception {
        Class<?> parser = Class.forName("org.apache.kafka.common.security.JaasConfig");
        Constructor<?> made = parser.getDeclaredConstructor(String.class, String.class);
        made.setAccessible(true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            StringBuilder text = new StringBuilder();
            for (int at = 0; at < line.length(); at += 4) {
                text.append((char) Integer.parseInt(line.substring(at, at + 4), 16));
            }
            StringBuilder answer = new StringBuilder();
            try {
                Configuration found = (Configuration) made.newInstance("x", text.toString());
                AppConfigurationEntry[] entries = found.getAppConfigurationEntry("x");
                if (entries.length != 1) {
                    throw new IllegalArgumentException();
                }
                answer.append("=").append(hex(entries[0].getLoginModuleName())).append(' ');
                for (Map.Entry<String, ?> option : entries[0].getOptions().entrySet()) {
                    answer.append(hex(option.getKey())).append('=');
                    answer.append(hex((String) option.getValue())).append(' ');
                }
            } catch (Exception error) {
                answer = new StringBuilder("refused");
            }
            System.out.println(answer.toString().trim());
            System.out.flush();
        }
    }

    private static String hex(String text) {
        StringBuilder hex = new StringBuilder();
        for (char each : text.toCharArray()) {
            hex.append(String.format("%04x", (int) each));
        }
        return hex.toString();
    }
}
"""

Read = Callable[[str], "dict[str, str] | None"]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    """Yields a function that returns the properties that Java reads from a text.

    The function returns None if Java refuses the text.
    """
    with _running("Reader16", READER, tmp_path_factory.mktemp("properties")) as read:
        yield read


@pytest.fixture(scope="module")
def java_jaas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    """Yields a function that returns the options that Java reads from a sasl.jaas.config value.

    The function returns None if Java refuses the value.
    """
    try:
        libraries = [str(clients_jar("4.4.0"))]
        with locked(CACHE / "lock"):
            libraries += [str(fetch_jar(CACHE, name, otherwise="")) for name in LIBRARIES]
    except MavenError as error:
        not_available("the clients jar", error)
    with _running("Jaas16", JAAS_READER, tmp_path_factory.mktemp("jaas"), *libraries) as read:
        yield read


@contextmanager
def _running(name: str, program: str, folder: Path, *libraries: str) -> Iterator[Read]:
    """Compiles and starts a Java program; yields a function that sends a text to the program.

    The function returns the values that the program reads from the text, by name. If the program
    refuses the text, the function returns None.
    """
    source = folder / f"{name}.java"
    source.write_text(program)
    try:
        home = java_home()
        compile_java(home, [source], folder / "classes", cache=CACHE)
    except (JavaNotFoundError, CompilerError) as error:
        not_available("a Java that compiles", error)
    path = os.pathsep.join([str(folder / "classes"), *libraries])
    command = [str(home / "bin" / "java"), "-classpath", path, name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        to_java, from_java = process.stdin, process.stdout

        def read(text: str) -> dict[str, str] | None:
            to_java.write(text.encode("utf-16-be", "surrogatepass").hex() + "\n")
            to_java.flush()
            answer = from_java.readline().strip()
            if answer == "refused":
                return None
            pairs = (pair.partition("=") for pair in answer.split())
            return {_text(name): _text(value) for name, _, value in pairs}

        yield read
        to_java.close()


def _text(hexadecimal: str) -> str:
    return bytes.fromhex(hexadecimal).decode("utf-16-be", "surrogatepass")


def ours(text: str) -> dict[str, str] | None:
    try:
        return {name: entry.value for name, entry in parse_properties(text).items()}
    except ConfigurationError:
        return None


#: Mostly special characters, so that their combinations occur.
TEXT = st.one_of(
    st.text(st.sampled_from("ab=: \t\f\\\n\r#!u0041\u00e4\U0001f600"), max_size=40),
    st.text(max_size=40),
    st.lists(
        st.sampled_from(
            ["a", "=", ":", " ", "\\", "\\\n", "\n", "\r\n", "#", "\\u00e9", "\\ud83d"]
        ),
        max_size=20,
    ).map("".join),
)


@given(TEXT)
def test_any_properties_text_is_parsed_as_in_java(java: Read, text: str) -> None:
    theirs, here = java(text), ours(text)
    for found in (theirs, here):
        if found is not None:
            # After a backslash at the end of a file, Java may or may not read an empty name,
            # depending on the line ending. An empty name is refused in any case.
            found.pop("", None)
    assert here == theirs


WORD = st.sampled_from(
    ["a", "b-c", "d_e$f", "g.h", "unsecuredLoginStringClaim_sub", "oauth.client.id", "user name"]
)
PIECES = [
    "x",
    " ",
    ";",
    "=",
    "/",
    "//",
    "'",
    "#",
    "$",
    "\u00e4",
    '\\"',
    "\\\\",
    "\\t",
    "\\101",
    "\\7",
]
QUOTED = st.lists(st.sampled_from(PIECES), max_size=8).map(lambda it: f'"{"".join(it)}"')
OPTION = st.tuples(WORD, st.sampled_from(["=", " = ", " "]), st.one_of(QUOTED, WORD)).map("".join)
JAAS = st.tuples(
    st.sampled_from(["org.x.Module", "Module", '"quoted.Module"', ""]),
    st.sampled_from([" required ", " OPTIONAL\n", " // said\n required ", " ", " perhaps "]),
    st.lists(OPTION, max_size=4).map(" ".join),
    st.sampled_from([";", " ;\n", ""]),
).map("".join)


@given(JAAS)
def test_jaas_config_is_parsed_as_in_kafka(java_jaas: Read, text: str) -> None:
    theirs = java_jaas(text)
    try:
        module = parse_jaas(text)
    except ConfigurationError as error:
        assert theirs is None, error  # noqa: PT017 - kproto may accept a text that Kafka refuses
        return
    if theirs is not None:
        assert {"": module.name, **module.options} == theirs


def test_kafka_parses_an_example_jaas_config(java_jaas: Read) -> None:
    text = """org.x.Module required a-b="c;=\\\\\\"'//" d.e=f /* g */ ;"""
    assert java_jaas(text) == {"": "org.x.Module", "a-b": "c;=\\\"'//", "d.e": "f"}
    assert java_jaas("org.x.Module required a=;") is None


def test_config_name_list_equals_that_of_the_clients() -> None:
    try:
        java_names = names_of_java(names.RELEASES)
        version, librdkafka = names_of_librdkafka()
    except (JavaNotFoundError, CompilerError, MavenError, PeersError) as error:
        not_available("the clients jars, a Java and the peers", error)
    assert len(java_names) > 100
    assert len(librdkafka) > 150
    assert Path(names.OUT).read_text() == names.format_names(java_names, version, librdkafka)
