"""Tests which numbers the settings accept, and the errors for other numbers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kproto.wire.checks import check_least, check_whole_number
from kproto.wire.errors import ConfigurationError


@pytest.mark.parametrize("value", [0, -1, 1.0, "10", None, True, float("nan")])
def test_other_values_than_positive_integers_are_refused(value: object) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_whole_number("linger_ms", value, 1)
    assert str(caught.value) == f"linger_ms is {value!r}; it must be a whole number of at least 1"
    assert isinstance(caught.value, ValueError)


def test_the_bounds_themselves_are_accepted() -> None:
    check_whole_number("port", 0, 0, 65_535)
    check_whole_number("port", 65_535, 0, 65_535)
    check_whole_number("sizes", 1 << 70, 1)
    for wrong in (-1, 65_536):
        with pytest.raises(ConfigurationError, match=rf"^port is {wrong}; .* from 0 to 65535$"):
            check_whole_number("port", wrong, 0, 65_535)


def test_a_table_of_settings_is_checked() -> None:
    settings = SimpleNamespace(retries=0, in_flight=0)
    check_least(settings, {"retries": 0})
    with pytest.raises(ConfigurationError, match=r"^in_flight is 0; .* at least 1$"):
        check_least(settings, {"retries": 0, "in_flight": 1})
