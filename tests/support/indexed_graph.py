"""`IndexedGraph`: a graph in the same process, and the index of its literals."""

from pyoxigraph import Quad, QuerySolutions, Store

from graphdb.model import ChangeSet
from graphdb.planning.engine_text import engine_text
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.text_tables import TextTable
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import SearchedStar
from graphdb.store.word_searches import WordSearch
from graphdb.text.hit_columns import HitColumns
from graphdb.text.hit_joins import HitJoiner
from graphdb.text.literal_index import ALL, LiteralIndex
from graphdb.text.literal_search import LiteralSearcher
from graphdb.text.word_answers import WordAnswers

__all__ = ["IndexedGraph"]


class IndexedGraph:
    """A store whose literals are indexed, with columns; both follow it when they are told to."""

    def __init__(self, subjects_max: int = 1_000) -> None:
        self.quads = QuadStore(Store())
        self.log_index = 0
        columns = HitColumns(self.quads, subjects_max, lambda: None)
        scan, current = self.quads.quads_of, lambda: self.log_index
        self.index = LiteralIndex(scan, [ALL], current, columns=columns)
        self.quads.text_index = self.index
        self.searcher = LiteralSearcher(self.index.analyzers, [ALL], 1_000)
        self.joiner = HitJoiner(columns)
        self.word_answers = WordAnswers(self.searcher, columns)
        self.take_in()

    def apply(self, added: list[Quad], removed: int) -> None:
        present = sorted(self.quads.dataset_quads(), key=str)
        new = tuple(quad for quad in dict.fromkeys(added) if quad not in set(present))
        self.quads.apply(ChangeSet(removed=tuple(present[:removed]), added=new))
        self.log_index += 1

    def take_in(self) -> None:
        while self.index.has_work:
            self.index.begin()
            self.index.step()

    def joined(self, star: SearchedStar) -> TextTable | None:
        columns = self.joiner.columns(star)
        if columns is None:
            return None
        state = self.index.state(self.log_index)
        planned = self.searcher.planned(star.search, state, Dataset(), union_default_graph=False)
        docs, scores, _ = self.searcher.hits(planned, counts=False)
        return self.joiner.joined(star, columns, planned.searcher, docs, scores, self.quads, 10_000)

    def answer(self, search: WordSearch, words: str) -> bytes | None:
        return self.word_answers.answer(search, words, self.index.state(self.log_index))

    def of_engine(self, text: str) -> QuerySolutions:
        state = self.index.state(self.log_index)
        tables = {
            search.name: self.searcher.table(
                self.searcher.planned(search, state, Dataset(), union_default_graph=False), self.log_index
            )
            for search in engine_text(parse_query(text)).searches
        }
        answer = self.quads.query(parse_query(text), Dataset(), tables)
        assert isinstance(answer, QuerySolutions)
        return answer
