"""Runs the integration tests of other clients on the embedded broker and on a real one.

The pytest plugin of kproto starts the broker in place of the broker that the tests would start.
"""
