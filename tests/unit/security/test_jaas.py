"""Tests valid notations of `sasl.jaas.config`, and the errors of invalid notations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.security.jaas import parse_jaas
from kproto.wire.errors import ConfigurationError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{PLAIN} required;", {}),
        (f"{PLAIN} Required ;", {}),
        (f'{PLAIN} required username="a" password="b";', {"username": "a", "password": "b"}),
        (f"{PLAIN} required username='a' password='b\"c;';", {"username": "a", "password": 'b"c;'}),
        (f"{PLAIN} required username=alice a.b-c = 5;", {"username": "alice", "a.b-c": "5"}),
        (f'{PLAIN} required\n  a="b"\r\n\tpassword="c" ;\n', {"a": "b", "password": "c"}),
        (f'{PLAIN} required a="x" // said\n b="y" /* ; */;', {"a": "x", "b": "y"}),
        (f'{PLAIN} required a="\\"\\\\\\t\\101\\7x";', {"a": '"\\\tA\ax'}),
        (f'{PLAIN} required a="";', {"a": ""}),
        (f'{PLAIN} required a="x//y=z";', {"a": "x//y=z"}),
    ],
)  # fmt: skip
def test_a_login_module_is_read(text: str, options: dict[str, str]) -> None:
    module = parse_jaas(text)
    assert (module.name, module.options) == (PLAIN, options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (" /* hunter2 */ ", "is empty"),
        (f'{PLAIN} required password="hunter2"', "does not end with ';'"),
        (f"{PLAIN} required", "does not end with ';'"),
        (f"{PLAIN};", "must begin with the class"),
        (f"{PLAIN} hunter2;", "must have one of required, requisite"),
        ("= required;", "must begin with the class"),
        (f'{PLAIN} required password="hunter2;', "a quote that is not closed"),
        (f'{PLAIN} required a="x" password=hunter2"x";', "as its option 3"),
        (f'{PLAIN} required a="x" password="hunter2" b;', "as its option 3"),
        (f"{PLAIN} required password hunter2;", "as its option 1"),
        (f"{PLAIN} required password==;", "as its option 1"),
        (f"{PLAIN} required password=hun;ter2;", "more than one login module"),
        (f"{PLAIN} required; {PLAIN} required;", "more than one login module"),
    ],
)
def test_errors_never_quote_the_text(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        parse_jaas(text)
    assert str(caught.value).startswith("sasl.jaas.config ")
    assert "hun" not in str(caught.value)


@given(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")))
def test_any_password_can_stand_in_quotes(password: str) -> None:
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_jaas(f'{PLAIN} required password="{escaped}";').options == {"password": password}


@given(st.text("ab=;\"'\\/* \n.", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    said = "sasl.jaas.config "
    try:
        parse_jaas(f"{PLAIN} required {text};")
    except ConfigurationError as error:
        said = str(error)
    assert said.startswith("sasl.jaas.config ")


def test_options_are_in_no_repr() -> None:
    assert "hunter" not in repr(parse_jaas(f'{PLAIN} required password="hunter2";'))
