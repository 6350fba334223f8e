"""Makes `python -m kproto` run the command `kproto`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
