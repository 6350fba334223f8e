"""Implements the codec correctly except for one fault, which the program's argument names."""

from __future__ import annotations

import json
import os
import sys
import time

from kproto.fuzz import kproto_codec
from kproto.messages import MetadataRequest  # the faults depend on its topics

fault = sys.argv[1]
held: list[str] = []


def say(line: str) -> None:
    print(line, flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    answer = kproto_codec._answered(line)
    said = json.dumps(answer)
    data = bytes.fromhex(asked.get("hex", ""))
    hits = False  # true for a request with an "e" in a topic name
    try:
        topics = MetadataRequest.decode_from(data, 0, asked["version"])[0].topics
        hits = "hex" in asked and any("e" in (topic.name or "") for topic in topics or ())
    except Exception:
        pass
    match fault:
        case "looser" if "refused" in answer and asked["operation"] == "rewrite":
            say(json.dumps({"id": asked["id"], "hex": asked["hex"]}))
        case "stricter" if hits:
            say(json.dumps({"id": asked["id"], "refused": "no e, please"}))
        case "bytes" if hits and "hex" in answer:
            say(json.dumps(answer | {"hex": answer["hex"] + "00"}))
        case "json" if hits and "json" in answer:
            answer["json"]["topics"] = []
            say(json.dumps(answer))
        case "end" if hits and "taken" in answer:
            say(json.dumps(answer | {"taken": 0}))
        case "failed" if hits:
            say(json.dumps({"id": asked["id"], "failed": "an e"}))
        case "crashed" if hits:
            sys.exit("an e was here")
        case "signal" if hits:
            os.abort()
        case "hung" if hits:
            time.sleep(3600)
        case "late" if hits:
            time.sleep(0.5)
            say(said)
        case "garbage" if hits:
            say("what an e!")
            say(said)
        case "other id" if hits:
            say(json.dumps(answer | {"id": 12345678}))
            say(said)
        case "id as text":
            say(json.dumps(answer | {"id": str(asked["id"])}))
        case "id as float":
            say(json.dumps(answer | {"id": float(asked["id"])}))
        case "twice" if hits:
            say(said)
            say(said)
        case "wrong kind" if hits:
            say(json.dumps({"id": asked["id"], "value": 1}))
        case "order" if asked["id"] % 8 == 0:
            held.append(said)
        case "order":
            say(said)
            while held:
                say(held.pop())
        case "mute":
            pass
        case "chatter":
            say("what is this?")
        case "odd letters" if "hex" in asked:
            say(json.dumps({"id": asked["id"], "failed": "\ud800 \x1b[2J \x9b31m"}))
        case "no numbers" if asked["operation"] == "decode":
            say(f'{{"id": {asked["id"]}, "json": {{"topics": [NaN, 1e999]}}}}')
        case "odd chatter":
            say("\x1b[2J")
        case "ends":
            say(said)
            sys.exit("enough")
        case "one id":
            while True:
                say('{"id": 1, "hex": ""}')
        case "flood" if hits:
            while True:
                say("e" * 1000)
        case _:
            say(said)
