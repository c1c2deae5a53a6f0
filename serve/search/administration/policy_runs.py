"""What is due of snapshot policies, done by the search port's own operations.

They come in through the application, as those of clients do.
"""

import asyncio
import logging

import httpx
from starlette.types import ASGIApp

from graphdb.access.principal import NODE
from graphdb.search.catalog.snapshot_policies import due_policies, is_retention_due
from graphdb.search.catalog.state import CatalogState
from serve.access.request_scope import PRINCIPAL_HEADER, InternalApplication

__all__ = ["PolicyRuns"]

logger = logging.getLogger(__name__)


class PolicyRuns:
    """For one event loop."""

    def __init__(self, app: ASGIApp) -> None:
        transport = httpx.ASGITransport(InternalApplication(app))
        headers = {PRINCIPAL_HEADER: NODE.to_json()}
        self._http = httpx.AsyncClient(
            transport=transport, base_url="http://node", timeout=None, headers=headers
        )

    async def run(self, state: CatalogState, now_ms: int) -> None:
        """Begin the snapshots that are due, and delete those that are kept no longer. What fails is noted
        with the policy, and tried again at its next time; what waits for another snapshot, at the next call.
        """
        try:
            names, retains = await asyncio.to_thread(
                lambda: (due_policies(state, now_ms), is_retention_due(state, now_ms))
            )
            for name in names:
                await self._ask("PUT", f"/_slm/policy/{name}/_execute")
            if retains:
                await self._ask("POST", "/_slm/_execute_retention")
        except Exception:
            logger.exception("what snapshot policies ask for cannot be done")

    async def _ask(self, method: str, path: str) -> None:
        answer = await self._http.request(method, httpx.URL(path=path))
        if answer.is_error:
            logger.warning("a snapshot policy could not be run: %s", answer.text[:500])
