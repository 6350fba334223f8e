"""Shared by the tests: brokers, interpreters of peers, reports of missing parts."""
