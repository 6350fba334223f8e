"""Reads client properties from the arguments `-X` and `--properties`."""

from __future__ import annotations

import argparse
from typing import Any

from ..security.properties import ClientProperties, from_properties, values_of_file
from ..wire.errors import ConfigurationError

__all__ = ["given_properties", "properties_from_options"]


def properties_from_options(options: argparse.Namespace) -> ClientProperties:
    """Returns the properties of the file and of `-X`, which overrides the file.

    Raises ConfigurationError for an unreadable file or an invalid property. The error quotes no
    value that may be a password.
    """
    # The command has its own argument for the broker, instead of bootstrap.servers.
    return from_properties(given_properties(options), set_by_caller={"bootstrap"})


def given_properties(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the values of `--properties` and `-X` by name; the values are not validated.

    Raises ConfigurationError for an unreadable file, and for a `-X` without `=`.
    """
    values: dict[str, Any] = {}
    if options.properties is not None:
        values |= values_of_file(options.properties)
    for given in options.x_properties:
        name, equals, value = given.partition("=")
        if not equals:
            raise ConfigurationError("-X must be NAME=VALUE, such as -X security.protocol=SSL")
        values[name.strip()] = value
    return values
