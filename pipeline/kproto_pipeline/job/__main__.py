"""Runs the command `kproto-pipeline` as `python -m kproto_pipeline.job`."""

from .command import process

if __name__ == "__main__":
    process()
