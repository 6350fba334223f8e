"""The functions that the bench measures, in one module for each client.

`WORKS` in a module maps names to these functions. Functions of different clients that do the same
have the same name. `worker` runs one function.
"""
