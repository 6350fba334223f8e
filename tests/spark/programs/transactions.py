"""Writes records in transactions, with the Java producer of the JVM connector."""

from __future__ import annotations

from typing import Any


def run(spark: Any, task: dict[str, Any]) -> int:
    """Sends `parts` in order; returns how many records were sent.

    Each part is [values, ending], and is one transaction of a producer of its own. The ending is
    commit, abort, or "" to leave the transaction open.
    """
    java = spark._jvm
    records = 0
    for number, (values, ending) in enumerate(task["parts"]):
        properties = java.java.util.Properties()
        for name, value in {
            "bootstrap.servers": task["bootstrap"],
            "transactional.id": f"{task['topic']}-{number}",
            "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer": "org.apache.kafka.common.serialization.StringSerializer",
        }.items():
            properties.setProperty(name, value)
        thread = java.java.lang.Thread.currentThread()
        before = thread.getContextClassLoader()
        producer = java.org.apache.kafka.clients.producer.KafkaProducer(properties)
        thread.setContextClassLoader(before)
        producer.initTransactions()
        producer.beginTransaction()
        for value in values:
            record = java.org.apache.kafka.clients.producer.ProducerRecord(
                task["topic"], str(value)
            )
            producer.send(record)
            records += 1
        producer.flush()
        if ending == "commit":
            producer.commitTransaction()
        elif ending == "abort":
            producer.abortTransaction()
        producer.close(java.java.time.Duration.ofMillis(0 if not ending else 30_000))
    return records
