"""Has a module per client with the works of the client: the functions that are measured.

Works of different clients that do the same have the same name. `worker` runs one work.
"""
