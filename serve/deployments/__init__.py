"""Where edges and actors meet: the actors behind the ports, and the service that runs them.

Nothing here imports Ray at the top: Ray reads its environment while it is imported, and `run_service` sets
that first. Nowhere else do `serve` and `actors` know each other.
"""

from serve.deployments.graph_port import GraphPort
from serve.deployments.search_port import SearchPort
from serve.deployments.service import run_service

__all__ = ["GraphPort", "SearchPort", "run_service"]
