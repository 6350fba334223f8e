"""`python -m kproto_pipeline.job`: the command `kproto-pipeline`."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
