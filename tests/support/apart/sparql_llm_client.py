"""What `sparql-llm` reads of an endpoint, and how it validates queries with that.

    python sparql_llm_client.py GRAPH_URL

One line of JSON for each step: its name, and what it came to.
"""

import json
import sys
from typing import Any

from sparql_llm import (
    SparqlExamplesLoader,
    SparqlVoidShapesLoader,
    validate_sparql_in_msg,
    validate_sparql_with_void,
)
from sparql_llm.utils import get_prefixes_for_endpoint, get_schema_for_endpoint


def say(step: str, value: Any) -> None:
    print(json.dumps([step, value]), flush=True)


endpoint, void = f"{sys.argv[1]}/sparql", f"{sys.argv[1]}/.well-known/void"
prefixes = get_prefixes_for_endpoint(endpoint)
say("prefixes", prefixes)
schema = get_schema_for_endpoint(endpoint, void)
say("schema", {kind: sorted(predicates) for kind, predicates in schema.items() if "llm.example" in kind})
for example in SparqlExamplesLoader(endpoint).load():
    say("example", [example.page_content, example.metadata["query_type"], example.metadata["answer"]])
for shape in SparqlVoidShapesLoader(endpoint, void_file=void).load():
    say("shape", [shape.page_content, shape.metadata["answer"].split("{")[0].strip()])
PREFIX = "PREFIX m: <https://llm.example/>\n"
right = f"{PREFIX}SELECT * WHERE {{ ?p a m:Person ; m:name ?name }}"
wrong = f"{PREFIX}SELECT * WHERE {{ ?p a m:Person ; m:nam ?name }}"
known = {endpoint: schema}
say("right", sorted(validate_sparql_with_void(right, endpoint, endpoints_void_dict=known)))
(fault,) = validate_sparql_with_void(wrong, endpoint, endpoints_void_dict=known)
say("wrong", sorted(fault.split("`")[1::2]))
message = f"```sparql\n#+ endpoint: {endpoint}\nSELECT * WHERE {{ ?p a m:Person ; m:name ?name }}\n```"
(checked,) = validate_sparql_in_msg(message, prefixes, known)
say("mended", ["PREFIX m:" in (checked["fixed_query"] or ""), checked["errors"]])
