"""`python -m kproto.cli` is `kproto`."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
