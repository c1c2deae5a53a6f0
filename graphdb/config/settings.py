"""The whole configuration of a node, and the checks that concern several sections at once."""

from typing import Self

from pydantic import Field, model_validator

from graphdb.addresses import is_loopback
from graphdb.config.access import Acl, Authentication, Authorization
from graphdb.config.audit import Audit
from graphdb.config.section import Section
from graphdb.config.service import (
    Alerts,
    Cluster,
    Columns,
    GraphQL,
    History,
    Holonic,
    LinkedData,
    Live,
    Mcp,
    Readers,
    Repository,
    Search,
    Security,
    Server,
    Shacl,
    Text,
    split_address,
)

__all__ = ["Settings"]


class Settings(Section):
    """All sections. `Settings()` is the defaults; nothing is read from the environment or from files."""

    server: Server = Field(Server(), description="Port 7001, and what holds for the whole node.")
    search: Search = Field(Search(), description="Port 9200.")
    text: Text = Field(Text(), description="Full text of the graph's literals.")
    cluster: Cluster = Field(Cluster(), description="Replication.")
    readers: Readers = Field(Readers(), description="Query workers.")
    columns: Columns = Field(Columns(), description="Column view.")
    security: Security = Field(Security(), description="Hosts that may be called.")
    shacl: Shacl = Field(Shacl(), description="SHACL validation.")
    repository: Repository = Field(Repository(), description="What RDF4J's clients see.")
    live: Live = Field(Live(), description="Live queries.")
    history: History = Field(History(), description="The past.")
    alerts: Alerts = Field(Alerts(), description="Alerts.")
    holonic: Holonic = Field(Holonic(), description="Holonic interface.")
    linked_data: LinkedData = Field(LinkedData(), description="Resources at their IRIs.")
    mcp: Mcp = Field(Mcp(), description="Tools for agents.")
    graphql: GraphQL = Field(GraphQL(), description="GraphQL interface.")
    authentication: Authentication = Field(Authentication(), description="How clients authenticate.")
    authorization: Authorization | None = Field(None, description="Permissions of roles.")
    audit: Audit = Field(Audit(), description="Who asked what.")
    acl: Acl | None = Field(None, description="What principals see.")

    @model_validator(mode="after")
    def _check_sections_together(self) -> Self:
        self._check_ports()
        server = self.server
        if not (
            is_loopback(server.host)
            or self.authentication.enabled
            or server.allow_unauthenticated_network_access
        ):
            raise ValueError(
                f"server.host = {server.host!r} is not loopback and authentication is off: everyone on the "
                "network could read and change everything; turn authentication.enabled on, or say "
                "server.allow_unauthenticated_network_access = true"
            )
        if self.acl is not None and not self.authentication.enabled:
            raise ValueError(
                "acl is configured and authentication is off: everybody would see everything; turn "
                "authentication.enabled on"
            )
        if self.holonic.enabled and self.cluster.enabled:
            raise ValueError(
                "holonic.enabled and cluster.enabled exclude each other: holonic is for standalone nodes"
            )
        return self

    def _check_ports(self) -> None:
        ports = {"server.port": self.server.port}
        if self.search.enabled:
            ports["search.port"] = self.search.port
        if self.cluster.enabled:
            ports["cluster.address"] = split_address(self.cluster.address)[1]
        if len(set(ports.values())) < len(ports):
            raise ValueError(f"{', '.join(ports)} need different ports")
