"""`graphdb serve --demo`: load a folder into the service that is starting, and say what to try with it."""

import contextlib
import sys
import time
from pathlib import Path

import httpx

from graphdb.config import Settings
from serve.cli.client import Client
from serve.cli.console import CommandError, progress, say
from serve.cli.demo_queries import DEMO_QUERIES
from serve.cli.online_load import load_online
from serve.cli.sources import find_sources

__all__ = ["announce_demo", "show_demo"]

READY_TIMEOUT_S = 60

SOON = """The workbench is at {url}/ in a few seconds."""
WORKBENCH = """
The Harbour Museum is loaded. Open the workbench in a browser:

   {url}/

It has five saved queries that show what the service can do."""

THINGS_TO_TRY = """
Things to try, in another terminal:

1. Who made what, as a table:

   {graphdb} query --endpoint {url} '
   PREFIX m: <https://museum.example/ontology#>
   SELECT ?artist (COUNT(?work) AS ?works) (MIN(?year) AS ?first) (MAX(?year) AS ?last)
   WHERE {{ ?work m:creator ?person ; m:year ?year . ?person m:name ?artist }}
   GROUP BY ?artist ORDER BY DESC(?works) ?artist'

2. Every kind of work, through the class hierarchy, as JSON over HTTP:

   curl -s {url}/sparql -H 'Content-Type: application/sparql-query' --data-binary '
   PREFIX m: <https://museum.example/ontology#>
   PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
   SELECT ?kind ?title WHERE {{ ?work a ?kind ; m:title ?title . ?kind rdfs:subClassOf m:Work
   FILTER(lang(?title) = "en") }} ORDER BY ?kind ?title'

3. Lend a work, and read the year's loans back:

   {graphdb} update --endpoint {url} '
   PREFIX : <https://museum.example/id/>
   PREFIX m: <https://museum.example/ontology#>
   INSERT DATA {{ GRAPH <https://museum.example/loans/2025> {{
     :loan-5 a m:Loan ; m:work :ebb ; m:lentTo :city-gallery }} }}'
   curl -s -H 'Accept: text/turtle' '{url}/data?graph=https://museum.example/loans/2025'
"""

SEARCH_TO_TRY = """
4. An index that follows the graph, for curl and for any client of Elasticsearch 8:

   curl -s {search_url}/paintings -XPUT -H 'Content-Type: application/json' -d '
   {{"settings": {{"graph": {{"shape": "https://museum.example/ontology#Painting"}}}}}}'
   sleep 3; curl -s '{search_url}/paintings/_search?q=heron&filter_path=hits.hits._source&pretty'
"""


def announce_demo(settings: Settings) -> None:
    """Print the address of the workbench, before anything else is printed."""
    if settings.server.workbench:
        say(SOON.format(url=_url(settings)))


def show_demo(settings: Settings, folder: Path) -> None:
    """Wait until the service is ready, load the folder (again changes nothing), print what to try."""
    url = _url(settings)
    search_url = f"http://{settings.server.host}:{settings.search.port}"
    try:
        _wait_until_healthy(url)
        with progress("demo", None) as shown:
            load_online(url, None, find_sources([str(folder)], None), None, shown)
    except CommandError as error:
        say(f"demo: {error}")
        return
    if settings.search.enabled:
        _wait_until_searchable(search_url)
    if settings.server.workbench:
        _save_queries(url)
    to_try = WORKBENCH if settings.server.workbench else "\nThe Harbour Museum is loaded."
    to_try += "\n" + THINGS_TO_TRY + (SEARCH_TO_TRY if settings.search.enabled else "")
    say(
        to_try.format(url=url, search_url=search_url, graphdb=_command())
        + "\nStop the service with Ctrl-C.\n"
    )


def _url(settings: Settings) -> str:
    return f"http://{settings.server.host}:{settings.server.port}"


def _save_queries(url: str) -> None:
    """Keep the queries of the demo in the service, those that it does not have yet."""
    with httpx.Client(base_url=url, trust_env=False) as client, contextlib.suppress(httpx.HTTPError):
        known = {one["name"] for one in client.get("/saved-queries").json()["queries"]}
        for query in DEMO_QUERIES:
            if query["name"] not in known:
                client.post("/saved-queries", json=query).raise_for_status()


def _wait_until_healthy(url: str) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        try:
            with Client(url) as client:
                if client.health()["status"] == "healthy":
                    return
        except CommandError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def _wait_until_searchable(search_url: str) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{search_url}/_cat/indices", trust_env=False).is_success:
                return
        time.sleep(0.2)


def _command() -> str:
    """How to call this command from where the person is."""
    return sys.argv[0]
