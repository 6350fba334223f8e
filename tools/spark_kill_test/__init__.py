"""Kills Spark's processes and brokers during streams, and compares the content: nothing lost.

A writer sends numbered records to a cluster of three brokers. Two queries read them, one into
Parquet and one into another topic, each with a checkpoint; both run in one driver with executors of
their own. Again and again something is killed with SIGKILL, by a seed: the driver with all its
processes, an executor, a Python worker, or a broker. What was killed is started again. At the end
everything is read by clients that are not Spark.
"""
