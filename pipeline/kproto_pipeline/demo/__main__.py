"""Runs the demo as `python -m kproto_pipeline.demo`."""

import sys

if __name__ == "__main__":
    try:
        from ..job.interrupts import run_as_process
        from .command import main
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    run_as_process(main)
