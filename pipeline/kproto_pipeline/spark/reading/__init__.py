"""The rows of a range of offsets, in a task: fetched ahead, and given to Spark as Arrow."""
