"""Lists commands of Kafka's console tools, which a real and the embedded broker must answer alike.

A command is the name of a tool with its arguments. `{f}` is a folder with the files of `FILES`, and
`{p}` has further arguments of producer-perf-test.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COMMANDS", "FILES", "SHARE_GROUP_COMMANDS", "words_of"]

_PACKAGE: Final = "org.apache.kafka.tools."

#: The main class of each tool.
_TOOLS: Final = {
    "acls": f"{_PACKAGE}AclCommand",
    "broker-api-versions": f"{_PACKAGE}BrokerApiVersionsCommand",
    "client-metrics": f"{_PACKAGE}ClientMetricsCommand",
    "cluster": f"{_PACKAGE}ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "consumer-groups": f"{_PACKAGE}consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": f"{_PACKAGE}ConsumerPerformance",
    "delete-records": f"{_PACKAGE}DeleteRecordsCommand",
    "features": f"{_PACKAGE}FeatureCommand",
    "get-offsets": f"{_PACKAGE}GetOffsetShell",
    "groups": f"{_PACKAGE}GroupsCommand",
    "leader-election": f"{_PACKAGE}LeaderElectionCommand",
    "log-dirs": f"{_PACKAGE}LogDirsCommand",
    "metadata-quorum": f"{_PACKAGE}MetadataQuorumCommand",
    "producer-perf-test": f"{_PACKAGE}ProducerPerformance",
    "reassign-partitions": f"{_PACKAGE}reassign.ReassignPartitionsCommand",
    "share-consumer": f"{_PACKAGE}consumer.ConsoleShareConsumer",
    "share-groups": f"{_PACKAGE}consumer.group.ShareGroupCommand",
    "streams-groups": f"{_PACKAGE}streams.StreamsGroupCommand",
    "topics": f"{_PACKAGE}TopicCommand",
    "transactions": f"{_PACKAGE}TransactionsCommand",
}

#: Tools whose first argument is a command, which must precede the bootstrap server.
_COMMAND_FIRST: Final = ("cluster",)

#: Files that commands read.
FILES: Final = {
    "records.json": '{"partitions":[{"topic":"t","partition":0,"offset":2}],"version":1}',
    "beyond.json": '{"partitions":[{"topic":"t","partition":0,"offset":999}],"version":1}',
    "moves.json": '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}',
    "unknown-move.json": '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[9]}]}',
    "topics.json": '{"version":1,"topics":[{"topic":"t"}]}',
    "election.json": '{"partitions":[{"topic":"t","partition":0}]}',
}

_TEXT: Final = """
topics --list
topics --create --topic t --partitions 1 --replication-factor 1
producer-perf-test --topic t --num-records 30 --record-size 10 {p}
topics --create --topic t --partitions 2 --replication-factor 1
topics --create --topic t --if-not-exists
topics --create --topic a/b
topics --create --topic u --config retention.ms=5000 --config cleanup.policy=compact
topics --create --topic v --config nope=1
topics --create --topic v --config retention.ms=x
topics --create --topic v --replication-factor 3
topics --create --topic v --partitions 0
topics --create --topic y --replica-assignment 1,1
topics --create --topic w --replica-assignment 1
topics --create --topic x --replica-assignment 7
topics --list
topics --list --exclude-internal
topics --describe --topic t
topics --describe --topic u
topics --describe --topic nope
topics --describe --topic nope --if-exists
topics --describe --topics-with-overrides
topics --describe --under-replicated-partitions
topics --describe --unavailable-partitions
topics --describe --at-min-isr-partitions
topics --describe --under-min-isr-partitions
topics --alter --topic t --partitions 3
topics --alter --topic t --partitions 3
topics --alter --topic t --partitions 1
topics --alter --topic nope --partitions 3
topics --alter --topic nope --partitions 3 --if-exists
topics --alter --topic w --partitions 2 --replica-assignment 1,1
topics --delete --topic nope
topics --delete --topic nope --if-exists
configs --describe --entity-type topics --entity-name t
configs --describe --entity-type topics --entity-name u
configs --describe --entity-type topics --entity-name u --all
configs --describe --entity-type topics --entity-name nope
configs --describe --entity-type topics
configs --alter --entity-type topics --entity-name t --add-config retention.ms=700000,segment.ms=900
configs --alter --entity-type topics --entity-name t --add-config nope=1
configs --alter --entity-type topics --entity-name t --add-config retention.ms=x
configs --alter --entity-type topics --entity-name t --add-config cleanup.policy=[compact,delete]
configs --alter --entity-type topics --entity-name t --delete-config segment.ms
configs --alter --entity-type topics --entity-name t --delete-config cleanup.policy
configs --alter --entity-type topics --entity-name t --delete-config nope
configs --alter --entity-type topics --entity-name nope --add-config retention.ms=1
configs --describe --entity-type topics --entity-name t
configs --describe --entity-type brokers --entity-name 1
configs --describe --entity-type brokers --entity-default
configs --alter --entity-type brokers --entity-default --add-config log.segment.bytes=2000000
configs --alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=2
configs --alter --entity-type brokers --entity-name 1 --add-config num.partitions=2
configs --alter --entity-type brokers --entity-default --add-config log.retention.ms=x
configs --alter --entity-type brokers --entity-default --delete-config log.segment.bytes
configs --alter --entity-type brokers --entity-name 1 --delete-config log.cleaner.threads
configs --alter --entity-type broker-loggers --entity-name 1 --add-config root=DEBUG
configs --alter --entity-type broker-loggers --entity-name 1 --add-config root=NOPE
configs --alter --entity-type broker-loggers --entity-name 1 --add-config root=ERROR
configs --alter --entity-type users --entity-name a --add-config producer_byte_rate=1024
configs --alter --entity-type clients --entity-name c --add-config consumer_byte_rate=2048
configs --alter --entity-type clients --entity-default --add-config request_percentage=300
configs --alter --entity-type users --entity-name a --add-config nope=1
configs --alter --entity-type ips --entity-name ::1 --add-config connection_creation_rate=99
configs --describe --entity-type users --entity-name a
configs --describe --entity-type clients
configs --describe --entity-type ips --entity-name ::1
configs --alter --entity-type clients --entity-default --delete-config request_percentage
configs --alter --entity-type ips --entity-name ::1 --delete-config connection_creation_rate
configs --alter --entity-type client-metrics --entity-name m --add-config metrics=[a.,b.]
configs --alter --entity-type client-metrics --entity-name m --add-config interval.ms=1
configs --describe --entity-type client-metrics --entity-name m
configs --alter --entity-type groups --entity-name g --add-config consumer.session.timeout.ms=50000
configs --describe --entity-type groups --entity-name g
client-metrics --list
client-metrics --describe --name m
client-metrics --alter --name n --interval 500
client-metrics --delete --name m
client-metrics --delete --name n
client-metrics --list
producer-perf-test --topic u --num-records 1 --record-size 10 {p}
get-offsets --topic t
get-offsets --topic t --time earliest
get-offsets --topic t --time -4
get-offsets --topic t --time -5
get-offsets --topic nope
get-offsets --topic-partitions t:0-1
delete-records --offset-json-file {f}/records.json
delete-records --offset-json-file {f}/beyond.json
get-offsets --topic t --time earliest
consumer-groups --list
consumer-groups --describe --group nope
consumer-groups --group g1 --topic t --reset-offsets --to-earliest --dry-run
consumer-groups --group g1 --topic t --reset-offsets --to-earliest --execute
consumer-groups --group g1 --topic t:0 --reset-offsets --to-offset 2 --execute
consumer-groups --group g1 --topic t --reset-offsets --to-latest --execute
consumer-groups --describe --group g1
consumer-groups --describe --group g1 --state
consumer-groups --describe --group g1 --members
consumer-groups --list --state
consumer-groups --delete-offsets --group g1 --topic t:0
consumer-groups --describe --group g1 --offsets
consumer-groups --delete --group g1
consumer-groups --delete --group g1
share-groups --list
share-groups --describe --group nope
configs --alter --entity-type groups --entity-name s --add-config share.auto.offset.reset=earliest
configs --alter --entity-type groups --entity-name s --add-config share.auto.offset.reset=nope
configs --alter --entity-type groups --entity-name s --add-config share.record.lock.duration.ms=1
configs --describe --entity-type groups --entity-name s
configs --describe --entity-type groups --entity-name s --all
share-groups --group s --topic t --reset-offsets --to-earliest --dry-run
share-groups --group s --topic t --reset-offsets --to-earliest --execute
share-groups --describe --group s
share-groups --describe --group s --offsets --verbose
share-groups --group s --topic t --reset-offsets --to-latest --execute
share-groups --describe --group s --offsets
share-groups --describe --group s --state
share-groups --describe --group s --members
share-groups --list --state
share-groups --group s --topic nope --reset-offsets --to-latest --execute
consumer-groups --describe --group s
groups --list
groups --list --share
share-groups --delete-offsets --group s --topic t
share-groups --describe --group s --offsets
share-groups --delete-offsets --group s --topic nope
share-groups --delete-offsets --group nope --topic t
share-groups --delete --group s
share-groups --delete --group s
groups --list
log-dirs --describe --topic-list t
log-dirs --describe --broker-list 1
log-dirs --describe --broker-list 9
features describe
features upgrade --feature group.version=1
features upgrade --feature nope=1
features downgrade --feature transaction.version=1 --dry-run
features disable --feature group.version --dry-run
metadata-quorum describe --status
metadata-quorum describe --replication
leader-election --election-type preferred --all-topic-partitions
leader-election --election-type preferred --topic t --partition 0
leader-election --election-type unclean --topic t --partition 0
leader-election --election-type preferred --topic nope --partition 0
leader-election --election-type preferred --path-to-json-file {f}/election.json
reassign-partitions --reassignment-json-file {f}/moves.json --execute
reassign-partitions --reassignment-json-file {f}/moves.json --verify
reassign-partitions --reassignment-json-file {f}/moves.json --cancel
reassign-partitions --reassignment-json-file {f}/unknown-move.json --execute
reassign-partitions --topics-to-move-json-file {f}/topics.json --broker-list 1 --generate
reassign-partitions --list
transactions list
transactions find-hanging --broker-id 1
transactions describe-producers --topic t --partition 0
transactions describe --transactional-id nope
acls --list
acls --add --allow-principal User:a --operation Read --topic t
cluster cluster-id
cluster list-endpoints
cluster unregister --id 9
topics --delete --topic w
topics --list
"""

#: The commands, in the order in which they run.
COMMANDS: Final = tuple(line for line in _TEXT.splitlines() if line)

#: Commands before a share group has members, while a member has three records of thirty, and after
#: it has accepted one of them and has left the group.
SHARE_GROUP_COMMANDS: Final = tuple(
    tuple(line for line in text.splitlines() if line)
    for text in (
        """
topics --create --topic t --partitions 1 --replication-factor 1
producer-perf-test --topic t --num-records 30 --record-size 10 {p}
configs --alter --entity-type groups --entity-name m --add-config share.auto.offset.reset=earliest
""",
        """
share-groups --list
share-groups --list --state
share-groups --list --state stable
share-groups --list --state empty
share-groups --list --state nope
share-groups --describe --group m
share-groups --describe --group m --offsets
share-groups --describe --group m --offsets --verbose
share-groups --describe --group m --members
share-groups --describe --group m --members --verbose
share-groups --describe --group m --state
share-groups --describe --group m --state --verbose
share-groups --describe --all-groups
share-groups --group m --topic t --reset-offsets --to-latest --dry-run
share-groups --group m --topic t --reset-offsets --to-latest --execute
share-groups --delete-offsets --group m --topic t
share-groups --delete --group m
groups --list
consumer-groups --describe --group m
""",
        """
share-groups --describe --group m --offsets --verbose
share-groups --describe --group m --members
share-groups --describe --group m --state --verbose
share-consumer --topic t --group m --max-messages 5 --timeout-ms 60000
share-groups --describe --group m --offsets --verbose
share-consumer --topic t --group m --max-messages 4 --timeout-ms 60000 --reject
share-groups --describe --group m --offsets
share-consumer --topic t --group m --max-messages 3 --timeout-ms 60000 --release
share-groups --describe --group m --offsets
share-groups --group m --topic t --reset-offsets --to-datetime 2000-01-01T00:00:00.000 --dry-run
share-groups --group m --topic t --reset-offsets --to-datetime 2000-01-01T00:00:00.000 --execute
share-groups --describe --group m --offsets
share-groups --group m --topic t --reset-offsets --to-datetime 2100-01-01T00:00:00.000 --execute
share-groups --describe --group m --offsets
share-groups --group m --all-topics --reset-offsets --to-earliest --execute
share-groups --describe --group m --offsets --verbose
share-groups --group m --topic t:0 --reset-offsets --to-latest --execute
share-groups --group n --topic t --reset-offsets --to-latest --dry-run
share-groups --describe --group n --offsets
share-groups --describe --all-groups --state
share-groups --delete-offsets --group m --topic t --topic nope
share-groups --delete-offsets --group m --topic t
share-groups --describe --group m --offsets
share-groups --delete --group m --group nope
share-groups --delete --all-groups
share-groups --list
""",
    )
)


def words_of(command: str, bootstrap: str, folder: str) -> list[str]:
    """Returns the main class of a command, and its arguments for the broker at `bootstrap`."""
    producer = f"--throughput -1 --producer-props bootstrap.servers={bootstrap}"
    tool, *arguments = command.format(f=folder, p=producer).split()
    server = [] if "{p}" in command else ["--bootstrap-server", bootstrap]
    first = 1 if tool in _COMMAND_FIRST else 0
    return [_TOOLS[tool], *arguments[:first], *server, *arguments[first:]]
