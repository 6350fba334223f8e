"""Mistakes that a type checker must report: one on each line marked `# error`.

Checkers read this file; it is never run. Every other line must be free of errors.
"""

from __future__ import annotations

import re

from kproto import Client, GroupConsumer, Record, TopicPattern, Uuid, messages
from kproto.messages import (
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from kproto.messages.metadata_request import MetadataRequestTopic, Topic  # error: no such struct
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData


async def wrong_requests(client: Client) -> None:
    await client.request(MetadataResponse())  # error: a response is no request
    await client.request(MetadataRequest)  # error: a class is no request
    await client.request("MetadataRequest")  # error: a name is no request
    await client.request(MetadataRequest(), version="12")  # error: a version is an int
    await client.request(MetadataRequest(), timeout=1.0)  # error: the name is timeout_ms
    fetched: FetchResponse = await client.request(MetadataRequest())  # error: another response
    found = await client.request(MetadataRequest())
    print(found.topic_data)  # error: not a field of this response
    print(fetched)


def wrong_field_names(request: MetadataRequest, response: MetadataResponse) -> None:
    MetadataRequest(topic=[])  # error: the name is topics
    MetadataRequest([])  # error: fields are keyword arguments
    request.topic = []  # error: the name is topics
    print(request.allow_topic_creation)  # error: the name is allow_auto_topic_creation
    print(response.brokers[0].node)  # error: the name is node_id
    del response.brokers[0].nodes  # error: the name is node_id
    print(Topic)
    print(messages.NoSuchRequest)  # error: no such message


def wrong_types_when_built() -> None:
    MetadataRequest(topics="a")  # error: a str is no array of topics
    MetadataRequest(topics=["a"])  # error: a topic is a struct
    MetadataRequest(topics=[{"name": "a"}])  # error: a dict is no struct
    MetadataRequest(allow_auto_topic_creation=None)  # error: this field is never null
    MetadataRequestTopic(name=b"a")  # error: a string is a str
    MetadataRequestTopic(topic_id="AAAAAAAAAAAAAAAAAAAABQ")  # error: a uuid is no str
    MetadataRequestTopic(topic_id=b"\0" * 16)  # error: bytes are no Uuid
    PartitionProduceData(index="0")  # error: an index is an int
    PartitionProduceData(index=0.5)  # error: a float is no int
    PartitionProduceData(records="text")  # error: records are bytes
    TopicProduceData(name=None)  # error: this name is never null
    ProduceRequest(topic_data=[MetadataRequestTopic()])  # error: a struct of another message


def wrong_types_when_set(request: MetadataRequest, response: MetadataResponse) -> None:
    request.allow_auto_topic_creation = "yes"  # error: not a bool
    request.allow_auto_topic_creation = None  # error: this field is never null
    response.throttle_time_ms = "5"  # error: not an int
    response.topics[0].partitions[0].replica_nodes = [b"1"]  # error: not a list of int
    response.topics[0].topic_id = "AAAAAAAAAAAAAAAAAAAABQ"  # error: not a Uuid
    response.topics = None  # error: this array is never null
    response.brokers.append(MetadataRequestTopic())  # error: not a broker
    request.unknown_tagged_fields = [5]  # error: not a tagged field


def null_must_be_checked(request: MetadataRequest, response: MetadataResponse) -> None:
    print(len(request.topics))  # error: the array may be null
    print(response.cluster_id.upper())  # error: the string may be null
    print(response.brokers.find(node_id=1).host)  # error: the result may be None


def wrong_keys(request: ProduceRequest, response: MetadataResponse) -> None:
    request.topic_data.find(topic="a")  # error: the key is name
    request.topic_data.find("a")  # error: keys are keyword arguments
    request.topic_data.find(name=5)  # error: a name is a str
    request.topic_data.find(topic_id="a")  # error: a topic id is a Uuid
    request.topic_data.find_all(index=0)  # error: the index is no key
    response.brokers.find(node_id="1")  # error: a node id is an int
    response.brokers.find()  # error: a key is missing
    response.topics.find(topic_id=Uuid.random())  # error: the key is the name


def wrong_codecs(request: MetadataRequest, data: bytes) -> None:
    request.encode()  # error: a version is missing
    request.encode("12")  # error: a version is an int
    MetadataResponse.decode("text", 12)  # error: not bytes
    MetadataResponse.decode(data)  # error: a version is missing
    MetadataResponse.from_json("{}", 12)  # error: not parsed JSON
    text: str = request.encode(12)  # error: an encoded message is bytes
    other: MetadataRequest = MetadataResponse.decode(data, 12)  # error: another message
    print(text, other)


async def wrong_consumers(client: Client) -> None:
    client.consumer("a", auto_commit=False)  # error: only with a group
    client.consumer(re.compile("a"))  # error: a pattern needs a group
    client.consumer("a", start=3)  # error: an offset is by partition
    client.consumer("a", group="g", stop_at_end=True)  # error: a group has no end
    client.consumer("a", group="g", start={("a", 0): 5})  # error: a group starts at its commits
    client.consumer("a", group=b"g")  # error: a group is a str
    client.consumer("a", group="g", group_protocol="newest")  # error: no such protocol
    client.consumer(TopicPattern("a"))  # error: a broker-side pattern needs a group
    client.consumer("a", group="g", on_lost=lambda: None)  # error: partitions are an argument
    async with client.consumer("a", group="g") as consumer:
        consumer.seek("a", 5)  # error: not a partition
        consumer.seek(("a", 0), "middle")  # error: no such position
        await consumer.commit([("a", 0)])  # error: offsets are missing
        offset: int = (await consumer.committed())["a", 0].offset  # error: may be None
        print(offset)


async def wrong_handlers(consumer: GroupConsumer) -> None:
    async def handle(record: Record) -> None:
        print(record.offset)

    async def handle_text(text: str) -> None:
        print(text)

    await consumer.run(print)  # error: not a coroutine function
    await consumer.run(handle_text)  # error: the handler gets records
    await consumer.run(handle, decode=str)  # error: the handler gets the decoded value
    await consumer.run(handle, order="topic")  # error: no such order
    await consumer.run(handle, retries="3")  # error: not a number
    await consumer.run(handle, dead_letter_topic=b"dead")  # error: a name is a str
    await consumer.run(handle, retry_topics=[5])  # error: neither a name nor a RetryTopic
    print((await consumer.run(handle)).failed)  # error: no such counter
