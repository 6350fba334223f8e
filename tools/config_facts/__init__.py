"""Reads the configs of topics, brokers, groups and client metrics from a real broker.

`python -m tools.config_facts` starts a broker, and writes `kproto/broker/configs.jsonl`.
"""
