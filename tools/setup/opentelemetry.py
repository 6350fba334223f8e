"""The environment of OpenTelemetry's SDK, which the tracing example needs, apart from all others.

`python -m tools.setup.opentelemetry` builds `.cache/opentelemetry` from
tools/peers/opentelemetry.txt when it is missing or out of date, and prints its interpreter.
"""

from __future__ import annotations

from pathlib import Path

from .environments import InstallError, python_with
from .programs import print_found

__all__ = ["OpenTelemetryError", "opentelemetry_python"]

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "tools" / "peers" / "opentelemetry.txt"
CACHE = ROOT / ".cache"


class OpenTelemetryError(RuntimeError):
    """The environment cannot be built here."""


def opentelemetry_python() -> Path:
    """Return the interpreter of the environment, building it when it must.

    Safe in several processes at once. Raises `OpenTelemetryError`.
    """
    try:
        return python_with(
            CACHE / "opentelemetry",
            install=["-r", str(REQUIREMENTS)],
            wanted=REQUIREMENTS.read_text(encoding="utf-8"),
        )
    except InstallError as error:
        raise OpenTelemetryError(str(error)) from error


def main() -> None:
    """Print the interpreter; end with a plain message when there is none."""
    print_found("OpenTelemetry", opentelemetry_python, OpenTelemetryError)


if __name__ == "__main__":
    main()
