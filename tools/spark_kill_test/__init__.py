"""Kills Spark's processes and brokers during streams, and compares the records: none may be lost.

A writer sends numbered records to a cluster of three brokers. Two queries read the records: one
writes them to Parquet, the other to another topic, each with a checkpoint. Both queries run in one
driver with separate executors. Repeatedly, SIGKILL kills a process that the seed chooses: the
driver with all its child processes, an executor, a Python worker, or a broker. A killed process is
restarted. At the end, clients other than Spark read all records.
"""
