"""A stand-in for the index's analyzers: words at spaces, lower case."""

from graphdb.search.errors import illegal_argument
from graphdb.search.similarity import STANDARD, AnySimilarity

__all__ = ["SPACES", "SpaceAnalyzers"]


class SpaceAnalyzer:
    position_gap = 100
    is_plain = False

    def tokens(self, text: str) -> tuple[list[str], list[int]]:
        words = text.lower().split()
        return words, list(range(len(words)))

    def end(self, text: str) -> int:
        return len(text.split())


class Lower:
    def normalize(self, text: str) -> str:
        return text.lower()


class SpaceAnalyzers:
    """Knows the analyzers standard and whitespace, the normalizer lower."""

    def analyzer(self, name: str) -> SpaceAnalyzer:
        if name not in ("standard", "whitespace"):
            raise illegal_argument(f"analyzer [{name}] has not been configured in mappings")
        return SpaceAnalyzer()

    def normalizer(self, name: str) -> Lower:
        if name != "lower":
            raise illegal_argument(f"normalizer [{name}] not found")
        return Lower()

    def similarity(self, name: str | None) -> AnySimilarity:
        if name not in (None, "BM25"):
            raise illegal_argument(f"similarity [{name}] not found")
        return STANDARD


SPACES = SpaceAnalyzers()
