"""One module per client, all with the same works (measured functions), and their shared code.

`worker` runs one work.
"""
