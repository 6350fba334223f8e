"""Kills Spark's processes and brokers during streams, and compares the content: nothing lost.

A writer sends numbered records to a cluster of three brokers. Two queries read them, one into
Parquet and one into another topic, each with a checkpoint; both run in one driver with executors of
their own. Again and again a process that the seed chooses is killed with SIGKILL: the driver with
all its child processes, an executor, a Python worker, or a broker. A killed process is started
again. At the end clients that are not Spark read everything.
"""
