"""Makes Spark repeat tasks whose rows are on the broker already, and counts the records.

Spark repeats a task after an error, by speculation, after the loss of an executor, and in another
attempt of its stage. The program of each case (`program`) waits until the broker has rows of the
first attempt, and only then disturbs it. Spark's event log shows the attempts that Spark has made.
"""
