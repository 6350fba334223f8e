"""Builds requests of administrators, and reads the error of each response."""

from __future__ import annotations

from typing import Any

from kproto.broker.context import Context
from kproto.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from kproto.messages.list_config_resources_request import ListConfigResourcesRequest
from tests.unit.broker.authorizer.authorized_requests import Build, named

__all__ = ["alter_configs", "error_of_first_response", "list_config_resources"]


def alter_configs(resource_type: int, name: str) -> Build:
    def build(context: Context, version: int) -> AlterConfigsRequest:
        wanted = AlterConfigsResource(resource_type=resource_type, resource_name=name)
        return AlterConfigsRequest(resources=[wanted])

    return build


def list_config_resources(context: Context, version: int) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest()


def error_of_first_response(answer: Any) -> str:
    return named(answer.responses[0].error_code)
