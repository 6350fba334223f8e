"""Has a module for each client, with the functions that the bench measures.

`WORKS` in a module maps names to these functions. Functions of different clients that do the same
have the same name. `worker` runs one function.
"""
