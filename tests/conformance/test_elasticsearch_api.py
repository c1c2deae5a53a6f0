"""What the port offers against the specification of Elasticsearch's API: paths, methods, parameters."""

import re
from functools import cache

import pytest

from graphdb.config import Settings
from serve.search.frame.exchange import Endpoint
from serve.search.frame.parameters import COMMON
from serve.search_app import MODULES
from tests.conformance.elasticsearch_suite import Api, all_apis
from tests.support.memory_search import MemorySearch

pytestmark = pytest.mark.skipif(not all_apis(), reason="the specification is not at ../shared/suites")

# What the specification has and an operation here refuses: with the reason.
REFUSED = {
    "snapshot.get after": "pages are asked for by offset",
    "snapshot.get from_sort_value": "pages are asked for by offset",
    "snapshot.get slm_policy_filter": "the metadata of a snapshot says its policy",
    "update_by_query version_type": "documents have one kind of version there",
}
# Paths of ours that the specification does not have: Elasticsearch answers them all the same.
BESIDE = frozenset(
    {
        *("POST /_alias/{}", "PUT /_alias/{}", "POST /_aliases/{}", "PUT /_aliases/{}", "GET /_aliases"),
        *("PUT /_alias", "PUT /{}/_alias", "PUT /{}/_aliases", "HEAD /{}/_alias", "GET /{}/_setting/{}"),
        "POST /_slm/policy/{}/_execute",
        *("POST /_open", "POST /_close"),  # refused with what is missing
        *("GET /_mappings", "GET /{}/_mappings", "POST /{}/_mappings", "PUT /{}/_mappings"),
    }
)


@cache
def offered() -> dict[tuple[str, str], Endpoint]:
    """By method and path, names of parts left out."""
    node, settings = MemorySearch(), Settings()
    endpoints = [one for module in MODULES for one in module.routes(node, settings)]
    return {(method, shape(one.path)): one for one in endpoints for method in one.methods}


def shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def specified() -> dict[tuple[str, str], Api]:
    return {
        (method, shape(path)): api
        for api in all_apis()
        for path, methods, _ in api.paths
        for method in methods
    }


def test_every_parameter_is_known() -> None:
    refused = {
        f"{api.name} {name}"
        for place, api in specified().items()
        if place in offered()
        for name in api.parameters - offered()[place].parameters - COMMON
    }
    assert refused == REFUSED.keys()


def test_every_path_of_an_operation_is_there() -> None:
    """Where one path or method of an operation is offered, so are the others."""
    begun = {api.name for place, api in specified().items() if place in offered()}
    missing = {
        f"{method} {path}"
        for (method, path), api in specified().items()
        if api.name in begun and (method, path) not in offered()
    }
    assert missing == set()


def test_what_is_beside_the_specification_is_known() -> None:
    assert {f"{method} {path}" for method, path in offered().keys() - specified().keys()} == BESIDE
