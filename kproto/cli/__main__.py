"""Runs the command `kproto` as `python -m kproto.cli`."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
