"""The routes of Fuseki's paths."""

from collections.abc import Callable, Collection

from starlette.routing import BaseRoute

from graphdb.errors import ConfigError
from serve.graph.fuseki.administration import FusekiAdministration
from serve.graph.fuseki.dataset_paths import DatasetEndpoint
from serve.graph.graph_store import GraphStoreEndpoint
from serve.graph.sparql import SparqlEndpoint, UpdateEndpoint
from serve.routing import resource, resource_where

__all__ = ["fuseki_routes"]


def fuseki_routes(
    name: str,
    taken: Collection[str],
    sparql: SparqlEndpoint,
    update: UpdateEndpoint,
    graphs: GraphStoreEndpoint,
    administration: FusekiAdministration,
    index: Callable[[], dict[str, str]],
) -> list[BaseRoute]:
    """After all others, whose paths come first. name: of the dataset; others are unknown paths. taken: the
    first segments of the other paths. index makes headers of failures.

    Raises ConfigError.
    """
    if name in taken:
        raise ConfigError(f"server.dataset_name: {name} is another path of this port")
    dataset = DatasetEndpoint(sparql, graphs)
    only = {"dataset": name}
    writing = {"put": dataset.put, "post": graphs.post, "delete": dataset.delete}
    return [
        resource("/$/ping", get=administration.ping, post=administration.ping),
        resource("/$/server", get=administration.server),
        resource("/$/datasets", get=administration.datasets),
        resource("/$/datasets/{name}", get=administration.dataset),
        resource("/$/stats", get=administration.stats),
        resource("/$/stats/{name}", get=administration.dataset_stats),
        resource("/$/backup/{name}", post=administration.back_up),
        resource("/$/backups-list", get=administration.list_backups),
        resource("/$/compact/{name}", post=administration.compact),
        resource("/$/tasks", get=administration.tasks),
        resource("/$/tasks/{id}", get=administration.task),
        resource_where(only, "/{dataset}/query", index, get=sparql.get, post=sparql.post),
        resource_where(only, "/{dataset}/sparql", index, get=sparql.get, post=sparql.post),
        resource_where(only, "/{dataset}/update", index, post=update.post),
        resource_where(only, "/{dataset}/data", index, get=dataset.get_data, **writing),
        resource_where(only, "/{dataset}/get", index, get=dataset.get_data),
        resource_where(only, "/{dataset}/patch", index, post=graphs.post),
        resource_where(only, "/{dataset}", index, **{**writing, "get": dataset.get, "post": dataset.post}),
    ]
