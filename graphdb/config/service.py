"""The sections that say where a node listens, keeps its data and what it may use: all but access control."""

import re
from typing import Annotated, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, StringConstraints, field_validator, model_validator

from graphdb.addresses import is_loopback
from graphdb.config.limits import GateLimits
from graphdb.config.section import (
    AbsoluteFile,
    AbsolutePath,
    AddressRange,
    DataGraph,
    GraphIri,
    HostRule,
    Keep,
    Port,
    Section,
    TileAddress,
    WebOrigin,
)

__all__ = [
    "Alerts",
    "Cluster",
    "Columns",
    "GraphQL",
    "History",
    "Holonic",
    "LinkedData",
    "Live",
    "Mcp",
    "Readers",
    "Repository",
    "RerankerAddress",
    "Search",
    "Security",
    "Server",
    "Shacl",
    "Text",
    "split_address",
]


_ModelName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z0-9._-]{1,100}$")]


class Server(Section):
    """Port 7001, and what holds for the whole node."""

    host: str = Field("127.0.0.1", min_length=1, description="Address that ports 7001 and 9200 are bound to.")
    port: Port = Field(7001, description="Port of SPARQL, Graph Store, health and metrics.")
    data_dir: AbsolutePath = Field(
        "data",  # type: ignore[assignment] # validated, and made absolute, like any other value
        description="Directory of the log, the store and its checkpoints; one service at a time owns it. "
        "A relative path starts where the command is started.",
    )
    disk_reserve_mb: int = Field(
        512,
        ge=0,
        description="Megabytes kept allocated in `data_dir`, at most a tenth of its disk, so that deletions, "
        "reads and the log's own work go on when the disk is full; 0: none.",
    )
    cors: tuple[str, ...] = Field(
        (), description='Origins that browsers may call from, or `["*"]`; none by default.'
    )
    query_timeout_seconds: float = Field(
        30, gt=0, description="Seconds after which a query is ended with 503."
    )
    slow_query_seconds: float = Field(
        5, ge=0, description="Queries that take at least this many seconds are logged in the slow-query log."
    )
    max_body_bytes: int = Field(
        104_857_600,
        gt=0,
        description="Largest request body in bytes, counted after decompression; beyond it 413.",
    )
    max_load_bytes: int = Field(
        1_099_511_627_776,
        gt=0,
        description="The same for the body of a bulk load, which also needs room on the disk.",
    )
    max_uri_bytes: int = Field(
        65_535,
        ge=1_024,
        le=65_535,  # the parser of URLs counts with 16 bits
        description="Longest path and query of a request in bytes, 65,535 at most; beyond it 414. Clients "
        "send SPARQL queries in it.",
    )
    max_header_bytes: int = Field(
        32_768, ge=1_024, description="Size of all header lines of a request in bytes; beyond it 431."
    )
    max_headers: int = Field(100, ge=10, description="Header lines of a request; one more is 431.")
    max_connections: int = Field(
        10_000,
        ge=1,
        description="Largest number of open connections of each port, and never more than half of the "
        "files that the process may open; a further one gets 503, and with TLS is closed.",
    )
    max_connections_per_address: int = Field(
        1_000,
        ge=1,
        description="Largest number of these from one client address (IPv6: from one /64); connections "
        "from `trusted_proxies` are not counted by address.",
    )
    head_timeout_seconds: float = Field(
        20,
        gt=0,
        description="Seconds from the opening of a connection, or from the first byte of a later request on "
        "it, to the end of the request's headers; beyond it 408.",
    )
    body_timeout_seconds: float = Field(
        30,
        gt=0,
        description="Period in seconds over which a request body must arrive at "
        "`min_body_bytes_per_second`; else 408.",
    )
    min_body_bytes_per_second: int = Field(
        100, ge=1, description="Slowest rate of a request body, over `body_timeout_seconds`."
    )
    idle_timeout_seconds: float = Field(
        75, gt=0, description="Seconds that a connection is kept open between two requests."
    )
    write_timeout_seconds: float = Field(
        60, gt=0, description="Seconds after which a client that reads nothing of its answer is disconnected."
    )
    tls_handshake_timeout_seconds: float = Field(
        10, gt=0, description="Seconds that the TLS handshake may take."
    )
    public_probes: bool = Field(
        False,
        description="Whether `/health` and `/metrics` answer without credentials when authentication is on.",
    )
    workbench: bool = Field(
        True,
        description="Whether browsers get the workbench at `/`; otherwise it is a list of paths in JSON.",
    )
    workbench_tiles: TileAddress | None = Field(
        None,
        description="Map tiles of the workbench, such as `https://tiles.example/{z}/{x}/{y}.png`; without "
        "them, maps show the outline of the land that comes with the workbench.",
    )
    workbench_image_hosts: tuple[WebOrigin, ...] = Field(
        (),
        description="Origins from which the workbench shows images that data name, such as "
        "`https://images.example`; other images are links.",
    )
    dataset_name: str = Field(
        "ds",
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Name of the dataset in the paths of Fuseki: with `ds`, clients of Jena connect to "
        "`/ds`. It must differ from the other paths of this port.",
    )
    union_default_graph: bool = Field(
        False, description="Whether the default graph of queries is the union of all graphs."
    )
    views: int = Field(
        16,
        ge=1,
        le=1000,
        description="How many views of the graph are kept on disk, one for all principals who see the same "
        "part of it. The least recently used one is removed first, and built again when it is "
        "needed.",
    )
    trusted_proxies: tuple[AddressRange, ...] = Field(
        (), description="Addresses or CIDR ranges whose `X-Forwarded-For` header is trusted."
    )
    allow_unauthenticated_network_access: bool = Field(
        False,
        description="Whether a host other than loopback may be bound while authentication is off. Then "
        "every client that reaches the port can read and change everything.",
    )
    tls_cert_file: AbsoluteFile | None = Field(
        None, description="PEM certificate chain for ports 7001 and 9200."
    )
    tls_key_file: AbsoluteFile | None = Field(
        None, description="PEM private key that belongs to `tls_cert_file`."
    )

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file are given together or not at all")
        return self


class RerankerAddress(Section):
    """A model that `text_similarity_reranker` asks; NAME is its `inference_id`."""

    url: str = Field(
        description="Where questions are posted to. Whoever names it here allows it, private addresses too."
    )
    format: Literal["cohere", "tei", "elasticsearch"] = Field(
        "cohere",
        description="How questions and answers are written: as by Cohere, Jina, Voyage and vLLM, by Text "
        "Embeddings Inference, or by `_inference/rerank` of Elasticsearch.",
    )
    model: str | None = Field(None, min_length=1, description="Name of the model, for servers with several.")
    api_key: SecretStr | None = Field(
        None, description="Sent as `Authorization: Bearer`; beyond loopback only with https."
    )
    timeout_seconds: float = Field(10, gt=0, le=600, description="Seconds that one question may take.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError("url is no address that begins with http:// or https://")
        if self.api_key is not None and parts.scheme == "http" and not is_loopback(parts.hostname):
            raise ValueError("api_key: a secret is sent without https on loopback only")
        return self


class Search(Section):
    """Port 9200, the search API."""

    enabled: bool = Field(True, description="Whether the search port is opened.")
    port: Port = Field(9200, description="Port of the search API; must differ from `server.port`.")
    cluster_name: str = Field("graphdb", min_length=1, description="Name of the cluster in the search API.")
    node_name: str | None = Field(
        None, min_length=1, description="Name of this node; by default the host name."
    )
    publish_address: str | None = Field(
        None,
        description="`host:port` at which clients reach this search port, if it differs from `server.host` "
        "and `port`: behind a proxy, or if the host is 0.0.0.0.",
    )
    hybrid_scorer: Literal["rrf", "linear", "bayesian"] = Field(
        "rrf",
        description="How text and vector results are merged; the variable `ES_HYBRID_SCORER` takes "
        "precedence.",
    )
    linear_weights: tuple[
        Annotated[float, Field(ge=0, allow_inf_nan=False)], Annotated[float, Field(ge=0, allow_inf_nan=False)]
    ] = Field((0.5, 0.5), description="Weights of `query` and `knn` for the scorer `linear`, not both 0.")
    shards_on: Literal["node", "cluster"] = Field(
        "node",
        description="Who searches the shards of indexes: the database node, or processes on the Ray nodes "
        "that have the resource index_shards.",
    )

    processes: Annotated[int, Field(ge=0, le=64)] | Literal["auto"] = Field(
        "auto",
        description="How many processes search beside that of the port when it is busy and processors are "
        "free; each takes about 120 MB until 30 s after its last search. 0: none; auto: one less than there "
        "are processors, at most 8.",
    )

    snapshot_paths: tuple[str, ...] = Field(
        (),
        description="Absolute directories below which snapshot repositories of type `fs` may lie, as "
        "`path.repo` in Elasticsearch; by default none, and repositories are refused.",
    )
    rerankers: dict[_ModelName, RerankerAddress] = Field(
        {}, description="Models that `text_similarity_reranker` may ask, by name."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for path in self.snapshot_paths:
            if not path.startswith("/"):
                raise ValueError(f"snapshot_paths: {path!r} is not an absolute directory")
        if not any(self.linear_weights):
            raise ValueError("linear_weights are both 0")
        if self.publish_address is not None:
            split_address(self.publish_address)
        return self


class Text(Section):
    """The index of the graph's literals, for `text:query` in queries."""

    predicates: tuple[str, ...] = Field(
        (),
        description='IRIs of the properties whose strings are indexed, or `["*"]` for those of all '
        "properties; by default none, and `text:query` is refused.",
    )
    max_hits: int = Field(
        100_000, ge=1, description="Largest number of hits of one `text:query`; a query with more is refused."
    )
    join_subjects_max: int = Field(
        1_000_000,
        ge=0,
        description="Largest number of subjects of indexed literals for which it is kept in memory what "
        "queries join with their hits: 250 bytes for a subject, and up to 250 for each of its objects; 0: "
        "nothing is kept.",
    )

    @field_validator("predicates")
    @classmethod
    def _check_predicates(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for iri in given:
            if iri != "*" and not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*", iri):
                raise ValueError(f"{iri!r} is neither an absolute IRI nor *")
        return given


def split_address(address: str) -> tuple[str, int]:
    """Take "host:port" apart; an IPv6 host stands in brackets, which are kept. ValueError if it is none."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and 1 <= int(port) <= 65535):
        raise ValueError(f"{address!r} is not host:port")
    return host, int(port)


class Cluster(Section):
    """Replication with other nodes through Raft, on port 7002."""

    enabled: bool = Field(
        False, description="Whether this node replicates with `peers`; otherwise it is standalone."
    )
    node_id: int = Field(1, ge=1, description="Number of this node, different on every node.")
    address: str = Field("127.0.0.1:7002", description="`host:port` that this node listens on for its peers.")
    peers: tuple[Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*@.+$")], ...] = Field(
        (), description="The other nodes, each `node_id@host:port`."
    )
    secret: SecretStr | None = Field(
        None, min_length=16, description="Secret shared by all nodes; it or TLS is needed beyond loopback."
    )
    tls_cert_file: AbsoluteFile | None = Field(
        None, description="PEM certificate that this node shows its peers."
    )
    tls_key_file: AbsoluteFile | None = Field(None, description="PEM private key of `tls_cert_file`.")
    tls_ca_file: AbsoluteFile | None = Field(
        None, description="PEM certificates that sign the peers' certificates."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        host, _ = split_address(self.address)
        self._check_peers()
        tls = (self.tls_cert_file, self.tls_key_file, self.tls_ca_file)
        if any(tls) and not all(tls):
            raise ValueError("tls_cert_file, tls_key_file and tls_ca_file are given together or not at all")
        if self.enabled and not is_loopback(host) and not (all(tls) or self.secret):
            raise ValueError(f"address {self.address} is not loopback: it needs TLS files or a secret")
        return self

    def _check_peers(self) -> None:
        ids = [self.node_id]
        for peer in self.peers:
            number, _, address = peer.partition("@")
            split_address(address)
            ids.append(int(number))
        if len(set(ids)) < len(ids):
            raise ValueError("peers: each node_id stands once, and this node's own is not among them")


class Readers(Section):
    """Worker processes for queries that are not cheap, and the cache of their answers."""

    count: int = Field(
        4, ge=1, description="Number of reader processes on this node; each evaluates one query at a time."
    )
    memory_limit_mb: int = Field(
        2048, ge=64, description="Memory in MB of one reader; a query that needs more is ended with 503."
    )
    queue_timeout_seconds: float = Field(
        10, ge=0, description="Seconds that a query waits for a free reader before it is refused with 503."
    )
    queue_max: int = Field(1000, ge=0, description="Queries that may wait; one more is refused with 503.")
    refuses_early: bool = Field(
        True,
        description="Whether a query is refused with 503 before it begins where it is certain that a reader "
        "takes more than 20 times the time limit; otherwise it is ended at that limit.",
    )
    result_cache_mb: int = Field(
        64, ge=0, description="Memory in MB for cached answers; 0 turns the cache off."
    )


_SHARDS_MAX = 256


class Columns(Section):
    """The column view for analytical queries."""

    enabled: bool = Field(True, description="Whether the column view is maintained.")
    memory_limit_mb: int = Field(
        2048,
        ge=64,
        description="Memory in MB that it may use before it spills to disk, with that for arrays.",
    )
    arrays_memory_mb: int | None = Field(
        None,
        ge=1,
        description="Memory in MB, out of memory_limit_mb, for arrays that aggregates are computed from and "
        "for the strings in order: at most a half, by default a quarter. A predicate whose arrays do not fit "
        "is left to SQL.",
    )
    spill_dir: AbsolutePath | None = Field(
        None, description="Directory for data spilled to disk; by default next to the view."
    )
    spill_limit_mb: int = Field(
        16384,
        ge=64,
        description="Largest amount of spilled data in MB; a query that would spill more goes to a reader.",
    )
    queries_max: int = Field(
        4,
        ge=1,
        description="Queries that it answers at a time; a further one waits, or goes to a reader where they "
        "take long. Each query, and the process that applies updates, may use an equal share of the memory "
        "before it spills.",
    )
    wait_seconds: float = Field(
        1,
        ge=0,
        description="Seconds that a query waits until the view has reached the index that its client may "
        "have read, and for the end of another one that began so recently; then it goes to a reader.",
    )
    plans_kept: bool = Field(
        True,
        description="Whether a query that differs from an earlier one in names of variables and in constants "
        "alone is not parsed again, and one that differs in names alone not compiled again.",
    )
    begun_at_once: bool = Field(
        True,
        description="Whether a query of a known shape is handed to the column view within the call that "
        "receives its request, and a short answer sent as it comes, without a task for the request. With "
        "authentication, an audit log or CORS requests always have a task.",
    )
    counts_without_rows: bool = Field(
        True,
        description="Whether counts and other aggregates of solutions are computed from arrays of the quads, "
        "where that is possible, instead of from a join.",
    )
    chosen_by_cost: bool = Field(
        True,
        description="Whether a query that both the column view and a reader can answer goes to the one that "
        "is estimated to be faster, by what answers took so far; otherwise it goes to the column view.",
    )
    dates_compared: bool = Field(
        True,
        description="Whether it compares dates of all forms; otherwise a query that compares those of "
        "several forms, or with durations and other literals of XML Schema, goes to a reader.",
    )
    past: bool = Field(
        True,
        description="Whether it also keeps quads that were removed, for as long as the history has them, so "
        "that it can answer queries of the past (as_of): 2 million changes, or 20 for each quad.",
    )
    strings_in_order: bool = Field(
        True,
        description="Whether the strings are kept in memory in the order of their texts, some 60 bytes each, "
        "from the first query that asks for it.",
    )

    shards: int | Literal["auto"] = Field(
        1,
        description="Into how many shards the view is divided, on the Ray nodes that have the resource "
        'column_shards, in one process on each: 1 for none, or "auto" for one on each such node.',
    )
    shard_memory_mb: int = Field(
        1024,
        ge=64,
        description="Memory in MB for each shard that the database of a process of shards may use before it "
        "spills to disk.",
    )
    shards_min_quads: int = Field(
        1_000_000,
        ge=0,
        description="The shards are asked the queries that read predicates of at least so many quads; the "
        "view of the database node answers others sooner by itself.",
    )

    @field_validator("shards", mode="before")
    @classmethod
    def _check_shards(cls, value: object) -> object:
        if value != "auto" and not (str(value).isdecimal() and 1 <= int(str(value)) <= _SHARDS_MAX):
            raise ValueError(f'columns.shards is not a number from 1 to {_SHARDS_MAX}, nor "auto"')
        return value

    @property
    def query_memory_mb(self) -> int:
        """What one query may have before it spills: a share for each, and one for what follows the log."""
        return self.tables_memory_mb // (self.queries_max + 1)

    @property
    def arrays_mb(self) -> int:
        """The memory for arrays."""
        return self.arrays_memory_mb or self.memory_limit_mb // 4

    @property
    def tables_memory_mb(self) -> int:
        """The memory that the database has: what is left, or as much as it needs to spill at all."""
        return max(64, self.memory_limit_mb - self.arrays_mb)

    @model_validator(mode="after")
    def _check_arrays(self) -> Self:
        if 2 * self.arrays_mb > self.memory_limit_mb:
            raise ValueError("columns.arrays_memory_mb is more than half of columns.memory_limit_mb")
        return self


class Security(GateLimits):
    """Hosts that this node may call (host names, addresses or CIDR ranges; none by default), and what a query
    or update may be at most; beyond a limit it is refused with 400.
    """

    service_allow: tuple[HostRule, ...] = Field((), description="Hosts that SERVICE in a query may call.")
    load_allow: tuple[HostRule, ...] = Field((), description="Hosts that LOAD in an update may read from.")
    service_timeout_seconds: float = Field(
        10, gt=0, description="Seconds that one call of SERVICE may take, including redirects."
    )
    service_max_bytes: int = Field(
        16_777_216, ge=1, description="Largest answer of one call of SERVICE in bytes, after decompression."
    )
    load_timeout_seconds: float = Field(
        30, gt=0, description="Seconds that LOAD may take for one document, including redirects."
    )
    reindex_allow: tuple[HostRule, ...] = Field(
        (), description="Hosts that `_reindex` may read from, Elasticsearch's `reindex.remote.whitelist`."
    )
    webhook_allow: tuple[HostRule, ...] = Field(
        (),
        description="Private and loopback hosts that alerts may call; public hosts need no entry. A host "
        "name allows all its addresses.",
    )


class Shacl(Section):
    """SHACL validation on request, and shapes that every write must satisfy."""

    enforce_graph: GraphIri | None = Field(
        None,
        description="IRI of the named graph whose shapes every write must satisfy; the same on all nodes.",
    )
    enforce_on: DataGraph = Field(
        "default",
        description="The data that must satisfy them: the default graph, `union` (all graphs together) or "
        "the named graph with this IRI.",
    )
    max_shapes_bytes: int = Field(
        16_777_216, ge=1, description="Size in bytes of the shapes in one request, decompressed."
    )


class Repository(Section):
    """The repository that clients of RDF4J and GraphDB see, and its transactions."""

    id: str = Field(
        "graphdb",
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Its id, in `/repositories/{id}`: letters, digits, hyphens and underscores.",
    )
    transaction_timeout_seconds: float = Field(
        60, gt=0, description="Seconds without a request after which an open transaction is rolled back."
    )
    max_transactions: int = Field(
        50,
        ge=0,
        description="Transactions that may be open on this node at once; a further one gets 503. One that is "
        "read takes about 4 MB of memory and 15 open files.",
    )
    max_transaction_quads: int = Field(
        200_000,
        ge=1,
        description="Quads that one transaction may add and remove; they are in memory until it ends.",
    )
    max_open_quads: int = Field(
        1_000_000, ge=1, description="Quads that all open transactions together may add and remove."
    )


class Live(Section):
    """Live queries over `/ws`."""

    max_subscriptions: int = Field(
        100_000, ge=0, description="Live queries that may be open on this node at once."
    )
    max_socket_subscriptions: int = Field(
        10_000, ge=1, description="Live queries that may be open on one WebSocket."
    )
    max_queue_bytes: int = Field(
        8_388_608,
        ge=65_536,
        description="Bytes of notifications that may wait for one WebSocket; a slower client is "
        "disconnected.",
    )
    max_reevaluated_queries: int = Field(
        16,
        ge=0,
        description="Distinct live queries on this node that are re-evaluated after each relevant change "
        "(aggregates over everything, LIMIT, paths of any length and similar).",
    )
    reevaluation_timeout_seconds: float = Field(
        5.0, gt=0, description="Time limit of one such evaluation; a live query that takes longer is ended."
    )
    max_reevaluation_backlog: int = Field(
        250,
        ge=1,
        description="Changes that may wait for the evaluation of one such query; a query with more is "
        "ended, and can be resumed.",
    )
    keep_changes_mb: int = Field(
        64,
        ge=0,
        description="Megabytes of the log that are kept at least, so that clients can resume `/changes` or "
        "a live query; in the log directory of each node.",
    )


class History(Section):
    """What is kept of the past, and asked of it: `/history`, `/diff`, `as_of`."""

    keep: Keep = Field(
        "90d",
        description='How long changes are kept: "forever", days such as "90d", a number of entries of the '
        'log, or "off". The newest megabytes of the log (`live.keep_changes_mb`) are kept in any case.',
    )
    max_gb: int = Field(
        10,
        ge=1,
        description="Gigabytes that they may take on the disk; the oldest are deleted first, up to what a "
        "named state needs.",
    )
    as_of_states: int = Field(
        4,
        ge=1,
        description="States of the past that are kept for `as_of`, those that were asked for last; each for "
        "a minute after its last use. It shares its files with the store, as far as these are the same.",
    )
    as_of_disk_mb: int = Field(
        4096, ge=1, description="Megabytes of disk that these may take together beside the store."
    )
    as_of_seconds: float = Field(
        120, gt=0, description="Seconds that the making of one may take; the requests for it wait less."
    )
    as_of_memory_mb: int = Field(
        1024, ge=128, description="Memory in MB of the process that makes one, which lives as long."
    )


class Alerts(Section):
    """Alerts, and how their webhooks are called."""

    max_alerts: int = Field(1_000, ge=0, description="Largest number of alerts.")
    webhook_timeout_seconds: float = Field(
        10, gt=0, description="Seconds that one call of a webhook may take, including redirects."
    )
    webhook_attempts: int = Field(
        8, ge=1, le=100, description="Calls for one firing before its delivery fails."
    )
    webhook_backoff_seconds: float = Field(
        1, gt=0, description="Seconds between the first two calls; doubled after each call, at most 60."
    )


class LinkedData(Section):
    """Resources at their own IRIs."""

    base_iris: tuple[GraphIri, ...] = Field(
        (),
        description="What the IRIs of resources start with, such as `https://data.example/id/`. GET of a "
        "path below one, whatever the host, answers with the description of the resource.",
    )


class Mcp(Section):
    """The tools for agents, by the Model Context Protocol."""

    enabled: bool = Field(True, description="Whether `/mcp` is served.")
    updates: bool = Field(
        False,
        description="Whether agents get the tool `update`; it needs the permission Write of its caller.",
    )


class Holonic(Section):
    """The holonic interface; standalone nodes only."""

    enabled: bool = Field(
        False, description="Whether `/holonic` is served; refused together with `cluster.enabled`."
    )
    default_tenant: str = Field(
        "default", pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Tenant of requests without a tenant."
    )


class GraphQL(Section):
    """The GraphQL interface."""

    enabled: bool = Field(True, description="Whether `/graphql` is served.")
    schema_source: Literal["ontology", "shacl", "combined", "inferred"] = Field(
        "combined", description="What the schema is generated from; `inferred`: from a sample of the data."
    )
    base_iri: str = Field(
        "http://example.org/",
        pattern=r"^[A-Za-z][A-Za-z0-9+.-]*:\S+$",
        description="Start of the IRIs of new resources.",
    )
    playground: bool = Field(True, description="Whether GET `/graphql` answers with the playground.")
    introspection: bool = Field(True, description="Whether `__schema` and `__type` may be queried.")
    subscriptions: bool = Field(True, description="Whether `/graphql/ws` is served.")
    max_depth: int = Field(15, ge=1, description="Deepest nesting of a query.")
    max_complexity: int = Field(
        1000, ge=1, description="Highest cost of a query: 1 for each field, and 10 more for each connection."
    )
    default_page_size: int = Field(
        25, ge=1, description="Page size without `first`; at most `max_page_size`."
    )
    max_page_size: int = Field(100, ge=1, description="Largest `first` or `last`.")

    @model_validator(mode="after")
    def _check_pages(self) -> Self:
        if self.default_page_size > self.max_page_size:
            raise ValueError("default_page_size is larger than max_page_size")
        return self
