"""`python -m tools.sync` writes the blocking client, `kproto/sync`."""

from __future__ import annotations

from tools.sync.classes import CLASSES
from tools.sync.emit import emitted, emitted_path


def main() -> None:
    for each in CLASSES:
        path = emitted_path(each)
        path.parent.mkdir(exist_ok=True)
        path.write_text(emitted(each), encoding="utf-8")


if __name__ == "__main__":
    main()
