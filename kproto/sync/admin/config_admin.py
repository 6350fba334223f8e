"""`ConfigAdmin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/config_admin.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...client.admin.admin import Admin
from ...client.admin.configs import AlterConfigOp, ConfigEntry, ConfigResource, ConfigResourceType
from ..wrapper import Wrapper

__all__ = ["ConfigAdmin"]


class ConfigAdmin(Wrapper[Admin]):
    """Describes and alters the configs of topics, brokers, loggers, groups and client metrics."""

    __slots__ = ()

    def describe_configs(
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
        return self._call(
            self._wrapped.describe_configs,
            resources,
            names=names,
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
            timeout_ms=timeout_ms,
        )

    def incremental_alter_configs(
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
        self._call(
            self._wrapped.incremental_alter_configs,
            configs,
            validate_only=validate_only,
            timeout_ms=timeout_ms,
        )

    def list_config_resources(
        self, types: Iterable[ConfigResourceType] = (), *, timeout_ms: int | None = None
    ) -> list[ConfigResource]:
        """Returns the resources that have configs, of the given types; without types, of all.

        Brokers from Kafka 3.7 to 4.0 list only client metrics, and only if `types` is
        `[ConfigResourceType.CLIENT_METRICS]`.
        """
        return self._call(self._wrapped.list_config_resources, types, timeout_ms=timeout_ms)

    def list_client_metrics_resources(self, *, timeout_ms: int | None = None) -> list[str]:
        """Returns the names of the subscriptions for client metrics (KIP-714, Kafka 3.7)."""
        return self._call(self._wrapped.list_client_metrics_resources, timeout_ms=timeout_ms)
