"""The routes of Fuseki's paths."""

from collections.abc import Callable, Collection

from starlette.routing import BaseRoute

from graphdb.errors import ConfigError
from serve.errors import failure_response
from serve.graph.fuseki.administration import FusekiAdministration
from serve.graph.fuseki.dataset_paths import DatasetEndpoint
from serve.graph.graph_store import GraphStoreEndpoint
from serve.graph.sparql import SparqlEndpoint, UpdateEndpoint
from serve.routing import Handler, resource, resource_where

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

    def known(path: str, **handlers: Handler) -> BaseRoute:
        return resource_where(only, path, index, failure_response, **handlers)

    writing: dict[str, Handler] = {"put": dataset.put, "post": graphs.post, "delete": dataset.delete}
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
        known("/{dataset}/query", get=sparql.get, post=sparql.post),
        known("/{dataset}/sparql", get=sparql.get, post=sparql.post),
        known("/{dataset}/update", post=update.post),
        known("/{dataset}/data", get=dataset.get_data, **writing),
        known("/{dataset}/get", get=dataset.get_data),
        known("/{dataset}/patch", post=graphs.post),
        known("/{dataset}", **{**writing, "get": dataset.get, "post": dataset.post}),
    ]
