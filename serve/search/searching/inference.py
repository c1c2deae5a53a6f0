"""`_inference` for models that rank: which there are, and what one says of some texts."""

from collections.abc import Sequence
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["endpoints"]

_TASK = "rerank"
_TEXTS_MAX = 10_000
_MEMBERS = frozenset({"query", "input", "top_n", "return_documents", "task_settings"})


def endpoints() -> list[Endpoint]:
    one, of_task = "/_inference/{inference_id}", "/_inference/{task_type}/{inference_id}"
    return [
        *endpoint("GET", ["/_inference", one, of_task], _models),
        *endpoint("POST", [one, of_task], _relevance, "timeout input_type", Body.JSON),
    ]


async def _models(exchange: Exchange) -> dict[str, Any]:
    known, name = exchange.node.rerankers.known, _name(exchange)
    if name is not None:
        exchange.node.rerankers.named(name)
    return {
        "endpoints": [
            {
                "inference_id": one,
                "task_type": _TASK,
                "service": model.format,
                "service_settings": {} if model.model is None else {"model_id": model.model},
                "task_settings": {},
            }
            for one, model in sorted(known.items())
            if name in (None, one)
        ]
    }


async def _relevance(exchange: Exchange) -> dict[str, Any]:
    """The texts in the order of their relevance."""
    name = exchange.node.rerankers.named(_name(exchange))
    body = await exchange.json() or {}
    for member in body:
        if member not in _MEMBERS:
            raise SearchError("x_content_parse_exception", f"[inference] unknown field [{member[:100]}]")
    question, texts = body.get("query"), body.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(question, str) or not question:
        raise illegal_argument("Required [query]: a text that the others may answer")
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise illegal_argument("Required [input]: a text, or a list of texts")
    if len(texts) > _TEXTS_MAX:
        raise illegal_argument(f"[input] has [{len(texts)}] texts, at most [{_TEXTS_MAX}] are asked about")
    found = await exchange.node.rerankers.relevance(name, question, texts)
    return {_TASK: _ranked(texts, found, body)}


def _ranked(texts: Sequence[str], relevance: Sequence[float], body: dict[str, Any]) -> list[dict[str, Any]]:
    order = sorted(range(len(texts)), key=lambda place: -relevance[place])
    count = body.get("top_n")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise illegal_argument("[top_n] must be a number that is greater than 0")
    shows = body.get("return_documents") is True
    return [
        {
            "index": place,
            "relevance_score": relevance[place],
            **({"text": texts[place]} if shows else {}),
        }
        for place in order[:count]
        if relevance[place] > float("-inf")
    ]


def _name(exchange: Exchange) -> str | None:
    task, name = exchange.get("task_type"), exchange.get("inference_id")
    if task is not None and task not in (_TASK, "_all"):
        raise illegal_argument(f"no model makes [{task[:100]}] here: [search.rerankers] has models that rank")
    return None if name == "_all" and exchange.request.method == "GET" else name
