"""Reads client properties from the arguments `-X` and `--properties`."""

from __future__ import annotations

import argparse

from ..security.properties import ClientProperties, from_properties, values_of_file
from ..wire.errors import ConfigurationError

__all__ = ["properties_from_options"]


def properties_from_options(options: argparse.Namespace) -> ClientProperties:
    """Returns the properties of the file and of `-X`, which overrides the file.

    Raises ConfigurationError for an unreadable file or an invalid property. The error quotes no
    value that may be a password.
    """
    values = {} if options.properties is None else values_of_file(options.properties)
    for given in options.x_properties:
        name, equals, value = given.partition("=")
        if not equals:
            raise ConfigurationError("-X must be NAME=VALUE, such as -X security.protocol=SSL")
        values[name.strip()] = value
    # The command has its own argument for the broker, instead of bootstrap.servers.
    return from_properties(values, set_by_caller={"bootstrap"})
