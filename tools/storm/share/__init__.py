"""Runs a storm of share groups: kills and stops members and brokers; checks each record.

    make storm ARGS=share                             # 10 minutes, three brokers of Kafka 4.4.0
    .venv/bin/python -m tools.storm share --minutes 1 --seed 7 --embedded

A producer writes records during the storm. `member` is the program of a member, `brokers` kills and
starts brokers, `run` chooses the actions, `sightings` checks the log lines of the members and the
records of the share coordinator, and `page` formats the result.
"""

from .run import SharePlan, ShareResult, share_storm

__all__ = ["SharePlan", "ShareResult", "share_storm"]
