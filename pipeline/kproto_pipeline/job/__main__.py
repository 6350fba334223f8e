"""`python -m kproto_pipeline.job`: the command `kproto-pipeline`."""

from .command import process

if __name__ == "__main__":
    process()
