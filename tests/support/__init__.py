"""Helpers of the tests: brokers, interpreters of other clients, reports of missing software."""
