"""`RerankingModels`: asks the models that `[search.rerankers]` names how well texts answer a question."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from actors.egress.rules import HostRules
from graphdb.config.service import RerankerAddress
from graphdb.errors import EvaluationFailed, UnavailableError
from graphdb.search.errors import SearchError
from graphdb.search.hybrid.reranker import Reranker, question_of, relevance_of

if TYPE_CHECKING:  # what calls hosts is imported with the first call, 15 ms: few nodes make any
    from actors.egress.guarded_fetch import GuardedFetch, Resolve

__all__ = ["RerankingModels"]

_ANSWER_BYTES_MAX = 16 << 20  # some models send the texts back
_SHOWN_BYTES = 300  # of an answer that says what was wrong
_DEFAULT = ".rerank-v1-elasticsearch"  # what Elasticsearch's clients ask for if nobody names a model


class RerankingModels:
    """`graphdb.search.hybrid.reranker.Rerankers`. For any number of calls at a time, on one event loop."""

    def __init__(self, addresses: Mapping[str, RerankerAddress], resolve: "Resolve | None" = None) -> None:
        self._addresses, self._resolve = addresses, resolve
        self.known = {name: Reranker(one.format, one.model) for name, one in addresses.items()}
        self._fetches: dict[str, GuardedFetch] = {}

    def named(self, name: str | None) -> str:
        """See `Rerankers.named`."""
        if name in (None, _DEFAULT) and name not in self._addresses and len(self._addresses) == 1:
            return next(iter(self._addresses))
        if name in self._addresses:
            assert name is not None
            return name
        known = ", ".join(sorted(self._addresses)) or "none"
        raise SearchError(
            "resource_not_found_exception",
            f"Inference endpoint not found [{(name or _DEFAULT)[:200]}]: [search.rerankers] of the "
            f"configuration has [{known}]",
            404,
            of_request=True,
        )

    async def relevance(self, name: str, question: str, texts: Sequence[str]) -> list[float]:
        """See `Rerankers.relevance`."""
        from actors.egress.guarded_fetch import Call

        one = self._addresses[name]
        headers = [("Content-Type", "application/json"), ("Accept", "application/json")]
        if one.api_key is not None:
            headers.append(("Authorization", f"Bearer {one.api_key.get_secret_value()}"))
        body = question_of(self.known[name], question, texts)
        call = Call(one.url, "POST", tuple(headers), body, follows_redirects=False)
        try:
            answer = await self._fetch(name).fetch(call)
        except EvaluationFailed as failed:
            raise UnavailableError(f"the reranker [{name}] does not answer: {failed}") from failed
        if answer.status != 200:
            said = answer.body[:_SHOWN_BYTES].decode(errors="replace")
            raise UnavailableError(f"the reranker [{name}] answers {answer.status}: {said}")
        try:
            return relevance_of(answer.body, len(texts))
        except ValueError as error:
            raise UnavailableError(f"the answer of the reranker [{name}] cannot be read: {error}") from error

    def _fetch(self, name: str) -> "GuardedFetch":
        """Who configures an address says by that that it may be called."""
        if name not in self._fetches:
            from actors.egress.guarded_fetch import Bounds, GuardedFetch, resolve

            address = self._addresses[name]
            host = urlsplit(address.url).hostname or ""
            setting = f"search.rerankers.{name}.timeout_seconds"
            bounds = Bounds(
                address.timeout_seconds, setting, _ANSWER_BYTES_MAX, "a reranker answers with numbers"
            )
            rules = HostRules("RERANK", [host], public_allowed=True)
            self._fetches[name] = GuardedFetch(rules, bounds, resolve=self._resolve or resolve)
        return self._fetches[name]
