"""Asks the Java program for the decisions of KRaft's StandardAuthorizer, for random cases.

Encodes the questions; `java/Rights.java` decodes them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kproto.broker.authorizer import (
    Acl,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

from .process import JavaProgramOperation as ReferenceOperation
from .process import KafkaJavaProgram, Outcome, ReferenceFailedError, records_question

__all__ = ["AuthorizerCase", "cases", "decide", "decided_here"]

#: Few and similar names, so that ACLs often match questions.
PRINCIPALS: Final = ("User:a", "User:b", "User:*", "Group:a")
ASKING: Final = ("User:a", "User:b", "User:c", "Group:a")
HOSTS: Final = ("*", "10.0.0.1", "10.0.0.2")
NAMES: Final = ("a", "ab", "abc", "abd", "b", "bc", "*", "a*", "")
#: The operations of every release; 3.9 lacks TWO_PHASE_COMMIT.
OPERATIONS: Final = tuple(Operation)[Operation.ALL : Operation.TWO_PHASE_COMMIT]
TYPES: Final = (ResourceType.TOPIC, ResourceType.GROUP)


class Question(NamedTuple):
    """A question: may `principal` at `host` do `operation` with the resource `name`?

    If `name` is None, the question is about at least one resource of the type.
    """

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str | None


class AuthorizerCase(NamedTuple):
    """The settings and the ACLs of an authorizer, and the questions to decide."""

    super_users: tuple[str, ...]
    allow_if_no_acl: bool
    acls: list[Acl]
    questions: list[Question]


def cases(count: int, seed: int) -> Iterator[AuthorizerCase]:
    """Yields random cases, equal for equal seeds; about half of the answers are yes."""
    chance = random.Random(seed)
    few = (Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL)
    for _ in range(count):
        acls = [
            Acl(
                chance.choice(PRINCIPALS),
                chance.choice(few if chance.random() < 0.7 else OPERATIONS),
                chance.choice(TYPES),
                chance.choice(NAMES[:-1]),
                chance.choice((PatternType.LITERAL, PatternType.PREFIXED)),
                chance.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
                chance.choice(("*", *HOSTS)),
            )
            for _ in range(chance.randrange(8))
        ]
        questions = [
            Question(
                chance.choice(ASKING),
                chance.choice(HOSTS[1:]),
                chance.choice(few[:-1] if chance.random() < 0.7 else OPERATIONS[1:]),
                chance.choice(TYPES),
                None if chance.random() < 0.3 else chance.choice(NAMES[:-1]),
            )
            for _ in range(12)
        ]
        super_users = ("User:c",) if chance.random() < 0.2 else ()
        yield AuthorizerCase(
            super_users, chance.random() < 0.3, list(dict.fromkeys(acls)), questions
        )


def decided_here(case: AuthorizerCase) -> str:
    """Returns kproto's decisions as a letter per question, Y or N."""
    authorizer = Authorizer(case.super_users, case.acls, allow_if_no_acl=case.allow_if_no_acl)
    answers = []
    for principal, host, operation, resource_type, name in case.questions:
        if name is None:
            may = authorizer.allows_any(principal, host, operation, resource_type)
        else:
            may = authorizer.allows(principal, host, operation, resource_type, name)
        answers.append("Y" if may else "N")
    return "".join(answers)


def decide(judge: KafkaJavaProgram, wanted: Iterable[AuthorizerCase]) -> Iterator[str]:
    """Yields Kafka's decisions for each case: Y or N per question. Raises ReferenceFailedError."""
    questions = (
        records_question(ReferenceOperation.DECIDE_RIGHTS, _lines(case).encode()) for case in wanted
    )
    for answer in judge.ask(questions):
        if answer.outcome is not Outcome.DONE:
            raise ReferenceFailedError(answer.data.decode())
        yield answer.data.decode()


def _lines(case: AuthorizerCase) -> str:
    lines: list[tuple[object, ...]] = [
        ("settings", ";".join(case.super_users), str(case.allow_if_no_acl).lower())
    ]
    for acl in case.acls:
        kind, permission = int(acl.resource_type), int(acl.permission)
        pattern, operation = int(acl.pattern_type), int(acl.operation)
        lines.append(
            ("acl", kind, acl.name, pattern, acl.principal, acl.host, operation, permission)
        )
    for asked in case.questions:
        who = (asked.principal, asked.host, int(asked.operation), int(asked.resource_type))
        lines.append(("any", *who) if asked.name is None else ("may", *who, asked.name))
    return "\n".join("\t".join(map(str, line)) for line in lines)
