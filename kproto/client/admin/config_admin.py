"""The calls of `Admin` for configs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ...wire.errors import KprotoError, UnsupportedVersionError
from ..core.gather import gather_all
from .area import AdminArea
from .arguments import checked_list, checked_map, checked_names
from .calls import PartCall
from .configs import (
    LISTED_TYPES,
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    alter_configs_call,
    broker_of,
    checked_resources,
    config_ops,
    describe_configs_call,
    list_config_resources_request,
    listed_config_resources,
)

__all__ = ["ConfigAdmin"]

V = TypeVar("V")


class ConfigAdmin(AdminArea):
    """Describes and alters the configs of topics, brokers, loggers, groups and client metrics."""

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Returns the configs of resources, by resource and name; all configs without `names`.

        Configs of a broker, and its loggers, come from that broker; others from any broker. Raises
        AdminError by resource.
        """
        wanted = checked_resources(checked_list("resources", resources))
        call = describe_configs_call(
            None if names is None else checked_names("names", names),
            synonyms=include_synonyms,
            documentation=include_documentation,
        )
        return await self._at_brokers(call, wanted, timeout_ms)

    async def _at_brokers(
        self,
        call: PartCall[ConfigResource, V],
        resources: Iterable[ConfigResource],
        timeout_ms: int | None,
    ) -> dict[ConfigResource, V]:
        """Sends the resources of each broker to this broker, and the others to any broker.

        A separate request for each broker keeps a lost broker from failing other resources.
        """

        async def send(
            parts: Sequence[ConfigResource], left_ms: int
        ) -> dict[ConfigResource, V | KprotoError]:
            by_node: dict[int | None, list[ConfigResource]] = {}
            for each in parts:
                by_node.setdefault(broker_of(each), []).append(each)
            answers = await gather_all(
                self._requester.attempt(call, its, left_ms) for its in by_node.values()
            )
            return {part: it for each in answers for part, it in each.items()}

        return await self._requester.run(call, send, resources, timeout_ms)

    async def incremental_alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | None] | Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Changes configs of resources; the other configs of a resource stay as they are (KIP-339).

        The changes of a resource are a list of `AlterConfigOp`, or a mapping of names to values,
        with None to restore the default. Raises AdminError by resource; of one resource, the broker
        makes all changes or none.
        """
        checked_resources(checked_map("configs", configs))
        changes = {
            ConfigResource(ConfigResourceType(kind), name): config_ops(its)
            for (kind, name), its in configs.items()
        }
        call = alter_configs_call(changes, validate_only=validate_only)
        await self._at_brokers(call, changes, timeout_ms)

    async def list_config_resources(
        self, types: Iterable[ConfigResourceType] = (), *, timeout_ms: int | None = None
    ) -> list[ConfigResource]:
        """Returns the resources that have configs, of the given types; without types, of all.

        Brokers from Kafka 3.7 to 4.0 list only client metrics, and only if `types` is
        `[ConfigResourceType.CLIENT_METRICS]`.
        """
        wanted = [ConfigResourceType(each) for each in checked_list("types", types)]
        action = "listing config resources"
        request = list_config_resources_request(wanted or LISTED_TYPES)
        try:
            return await self._requester.single(
                action, request, listed_config_resources, timeout_ms
            )
        except UnsupportedVersionError:
            if wanted != [ConfigResourceType.CLIENT_METRICS]:
                raise
        request = list_config_resources_request([])  # v0 has only these
        return await self._requester.single(action, request, listed_config_resources, timeout_ms)

    async def list_client_metrics_resources(self, *, timeout_ms: int | None = None) -> list[str]:
        """Returns the names of the subscriptions for client metrics (KIP-714, Kafka 3.7)."""
        found = await self.list_config_resources(
            [ConfigResourceType.CLIENT_METRICS], timeout_ms=timeout_ms
        )
        return [each.name for each in found]
