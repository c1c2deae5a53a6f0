"""The order of the rooms: each imports only those before it. `test_rooms` holds it.

A room is a package directly below its floor, with the packages within it, or a module beside those. A new
room is put after all that it imports. Where it would have to come before one of these, that dependency is
handed in instead, by somebody who stands after both.
"""

__all__ = ["EXCEPTIONS", "ROOMS"]

# what all of the code may name
_GROUND = "errors model timestamps public_text content_coding bounded_cache rdf config"
# queries over quads; then what is said and checked of them, and who may see them
_GRAPH = "geometry sparql geo store live access shacl graphql holonic node alerts"
# documents; the log and what orders it; the columns
_BESIDE = "log raft search columns"

_MEANS = """
    futures freed_memory process_bounds bounded_process disk_room service_files wire
    loop_thread worker_thread processes ray_private ray_environment python_values
"""
_STATE = "access egress alerts log raft shard readers columns views live node clustering search"
_WHOLE = "cluster connection offline"

_PARTS = """
    errors parameters negotiation answers routing access backend bodies openapi
    port_application
"""
_PORTS = (
    "port_watch port_websocket port_protocol port_server graph search graph_app search_app deployments cli"
)

ROOMS = [
    f"{floor}.{room}"
    for floor, rooms in [
        ("graphdb", [_GROUND, _GRAPH, _BESIDE]),
        ("actors", [_MEANS, _STATE, _WHOLE]),
        ("serve", [_PARTS, _PORTS]),
    ]
    for room in " ".join(rooms).split()
]

# (module, imported module): why it is not untied yet
EXCEPTIONS: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        [
            ("graphdb.sparql.cheap", "graphdb.geo.entailment"),
            ("graphdb.sparql.complexity", "graphdb.geo.derived_triples"),
            ("graphdb.sparql.complexity", "graphdb.geo.entailment"),
            ("graphdb.sparql.engine_text", "graphdb.geo.derived_triples"),
            ("graphdb.sparql.engine_text", "graphdb.geo.entailment"),
            ("graphdb.sparql.engine_text", "graphdb.geo.function_calls"),
            ("graphdb.sparql.engine_text", "graphdb.geo.narrowing_filters"),
            ("graphdb.sparql.printing", "graphdb.geo.lookups"),
            ("graphdb.sparql.gate", "graphdb.geo.function_calls"),
            ("graphdb.sparql.update", "graphdb.geo.function_calls"),
        ],
        "what is said of a query's geometry moves after `geo`, with those who compose the passes",
    ),
    **dict.fromkeys(
        [
            ("graphdb.sparql.graph_operations", "graphdb.store.net_change"),
            ("graphdb.sparql.graph_operations", "graphdb.store.stored_form"),
            ("graphdb.sparql.graph_operations", "graphdb.store.view"),
            ("graphdb.sparql.update", "graphdb.store.engine_errors"),
            ("graphdb.sparql.update", "graphdb.store.overlay"),
            ("graphdb.sparql.update", "graphdb.store.quad_store"),
            ("graphdb.sparql.update", "graphdb.store.small_joins"),
        ],
        "planning updates belongs after the store; it moves with the algebra that it evaluates",
    ),
}
