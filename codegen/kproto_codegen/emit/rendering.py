"""Renders the templates, and breaks long lines.

Text from a definition must be a checked identifier, a quoted literal or an escaped docstring before
it is passed to a template.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from ..errors import MissingPackageError
from .code import indent
from .wrapping import fitted

if TYPE_CHECKING:
    import jinja2

__all__ = ["block", "check_installed", "rendered"]


@cache
def _environment() -> jinja2.Environment:
    try:
        import jinja2  # an extra, which only `generate` needs
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"generating needs {error.name}, which is not installed; it comes with the extra "
            "kproto[codegen], from a checkout: pip install '.[codegen]'"
        ) from error
    return jinja2.Environment(  # noqa: S701 - renders Python, where HTML escapes would be wrong
        loader=jinja2.PackageLoader("kproto_codegen.emit"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=False,
    )


def check_installed() -> None:
    """Raises MissingPackageError if jinja2 is not installed."""
    _environment()


def rendered(template: str, head: Sequence[str], **values: object) -> str:
    """Returns the content of a file: its head, and the rendered template with long lines broken."""
    body = _environment().get_template(template).render(values)
    return "\n".join([*head, *fitted(body.rstrip("\n").split("\n"))]) + "\n"


def block(lines: Sequence[str], *, inside: bool = False) -> str:
    """Joins lines for a template; indents them if they are `inside` a class."""
    return "\n".join(indent(lines) if inside else lines)
