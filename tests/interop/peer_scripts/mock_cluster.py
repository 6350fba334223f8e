"""Runs librdkafka's mock cluster until standard input ends; prints the brokers as JSON."""

from __future__ import annotations

import json
import sys

from confluent_kafka import Producer

owner = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "unused"})
brokers = owner.list_topics(timeout=20).brokers.values()
print(json.dumps([f"{broker.host}:{broker.port}" for broker in brokers]), flush=True)
sys.stdin.read()
