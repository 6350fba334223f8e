"""Removes the secrets of a job from texts that other programs have written, such as Spark's errors.

A file system may repeat a key or a password of the settings in its message.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .settings import JobSettings

__all__ = ["REPLACEMENT", "without_secrets"]

#: Spark's own replacement.
REPLACEMENT: Final = "*********(redacted)"

#: The names of properties whose values are secrets; the first words are those of Spark's
#: `spark.redaction.regex`.
_NAMES: Final = re.compile(
    r"(?i)secret|password|token|access[.]?key|credential|jaas|private|passphrase|ssl[.].*key"
)

#: A shorter value, such as "true", may be a part of other words.
_SHORTEST: Final = 5


def without_secrets(text: str, settings: JobSettings) -> str:
    """Returns `text` with `REPLACEMENT` in place of each secret of the settings."""
    properties = (settings.source, settings.spark, settings.output.options)
    secrets = {
        value
        for each in properties
        for name, value in each.items()
        if _NAMES.search(name) and len(value) >= _SHORTEST
    }
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REPLACEMENT)
    return text
