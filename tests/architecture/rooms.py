"""The order of the rooms: each imports only those before it. `test_rooms` holds it.

A room is a package directly below its floor, with the packages within it, or a module beside those. A new
room is put after all that it imports. Where it would have to come before one of these, that dependency is
handed in instead, by somebody who stands after both.
"""

__all__ = ["ROOMS"]

# what all of the code may name
_GROUND = "errors model addresses timestamps public_text checked_json content_coding bounded_cache rdf config"
# queries over quads and updates of them; then what is said and checked of them, and who may see them
_GRAPH = """
    geometry sparql geo planning store updates live access shacl graphql holonic node alerts saved_queries
    namespaces transactions
"""
# documents; the log and what orders it; the columns
_BESIDE = "log history raft search text columns"

_MEANS = """
    futures freed_memory processes process_bounds bounded_process disk_room service_files wire
    loop_thread worker_thread ray_at_rest ray_private ray_environment fork_request fork_server
    gathering busy_polling python_values
"""
_STATE = (
    "access egress alerts log raft loading shard readers columns views history live node clustering search"
)
_WHOLE = """
    query_keeper cluster ray_calls shard_actors index_shard_actors divided_columns distributed_load connection
    offline
"""

_PARTS = """
    errors parameters negotiation answers inner_requests routing access backend bodies spooled_bodies
    openapi port
"""
_APPLICATIONS = """
    mcp graph search workbench graph_app search_app deployments cli
"""

ROOMS = [
    f"{floor}.{room}"
    for floor, rooms in [
        ("graphdb", [_GROUND, _GRAPH, _BESIDE]),
        ("actors", [_MEANS, _STATE, _WHOLE]),
        ("serve", [_PARTS, _APPLICATIONS]),
    ]
    for room in " ".join(rooms).split()
]
