"""`WordAnswers`: answers to searches of plain words with patterns about their hits, by one compiled call.

It gives the bytes that `HitJoiner.joined` and its table's writer give. What depends on the search or on the
present state alone is kept: the addresses of all that is read (`word_rows`), and the weight and the postings
of each word. What is left for a question is to look up its words, and that call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from graphdb.search.leaf_reader import Floats, Ints, Longs
from graphdb.search.query import Searcher
from graphdb.search.query.field_table import FieldTable, address_of
from graphdb.sparql.search_requests import Part
from graphdb.sparql.text_tables import KeptCells, frame_of
from graphdb.store.small_joins import written
from graphdb.store.word_searches import WordSearch
from graphdb.text import word_rows
from graphdb.text.hit_cells import FloatColumn, NumberedCells, PackedCells, frame_of_row
from graphdb.text.hit_columns import Generation, HitColumns, KnownObjects, ObjectColumn
from graphdb.text.hit_joins import keys_of
from graphdb.text.literal_index import ANALYZER, State
from graphdb.text.literal_search import LiteralSearcher, are_plain, score_texts

__all__ = ["WordAnswers"]

_SEARCHES_MAX: Final = 64
_WORDS_MAX: Final = 50_000  # of a field in one state
_ROWS_MAX: Final = 1_000
_POSTINGS_MAX: Final = 100_000  # half a millisecond
_ROOM, _ROOM_MAX = 1 << 16, 1 << 20  # for an answer, in bytes
_TRIES: Final = 8  # to make room and cells for one answer


class WordAnswers:
    """For one index of literals; on one thread, and made on any."""

    def __init__(self, searcher: LiteralSearcher, columns: HitColumns) -> None:
        self._searcher, self._columns = searcher, columns
        self._prepared: dict[WordSearch, _Prepared] = {}
        self._out = np.empty(0, np.uint8)
        word_rows.load()

    def answer(self, search: WordSearch, words: str, state: State) -> bytes | None:
        """The answer in the present state of the index, which is that of the store. None for words that mean
        more than themselves, and where it takes long, or not all that it needs is at hand.
        """
        if not are_plain(words):
            return None
        prepared = self._prepared.get(search)
        if prepared is None or not prepared.holds(state, self._columns):
            prepared = self._prepare(search, state)
        terms = None if prepared is None else prepared.terms(words.split())
        if prepared is None or terms is None:
            return None
        for _ in range(_TRIES):
            size, hits = prepared.write(*terms, self._out)
            if size >= 0:
                return self._out[:size].tobytes()
            if size == word_rows.LACKS_CELLS:
                prepared.make_cells(hits)
            elif size == word_rows.FULL and len(self._out) < _ROOM_MAX:
                self._out = np.empty(max(_ROOM, 2 * len(self._out)), np.uint8)
            else:
                break
        return None

    def _prepare(self, search: WordSearch, state: State) -> "_Prepared | None":
        # the others too: they would keep segments and columns that have been replaced
        kept = {each: made for each, made in self._prepared.items() if made.holds(state, self._columns)}
        self._prepared = kept if len(kept) < _SEARCHES_MAX else {}
        columns = self._columns.columns(keys_of(search.star))
        found = self._searcher.for_words(search.star.search, state)
        if columns is None or found is None:
            return None
        generation, in_order = columns
        known = [column.known(generation.subjects) for column in in_order]
        table, numbers = found[0].table(found[1]), _numbers_of(generation, found[0])
        if table is None or numbers is None or None in known:
            return None
        made = _Prepared(search, state, *found, table, generation, in_order)
        made.lay_out(numbers, [each for each in known if each is not None])
        self._prepared[search] = made
        return made


def _numbers_of(generation: Generation, searcher: Searcher) -> list[Ints] | None:
    """Those of the subjects of the documents, by leaf; None where a leaf has none yet."""
    found = [generation.docs.get(leaf.segment.name) for leaf in searcher.leaves]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


@dataclass(frozen=True, slots=True)
class _Word:
    """A term: its place among others, its number in each leaf, and how many postings it has."""

    order: tuple[float, str]
    weight: np.float32
    numbers: Longs
    postings: int
    alone: tuple[Longs, Floats]  # what a search for it alone is given


class _Prepared:
    """A search in one state."""

    def __init__(
        self,
        search: WordSearch,
        state: State,
        searcher: Searcher,
        path: str,
        table: FieldTable,
        generation: Generation,
        columns: Sequence[ObjectColumn],
    ) -> None:
        """path: of the field in which it searches, and that the table is of."""
        self._star, self._form = search.star, search.form
        self._leaves, self._searcher, self._path, self._table = state.leaves, searcher, path, table
        self._generation, self._columns = generation, columns
        self._inverse = searcher.inverse_norms(path)
        self._words: dict[str, _Word | None] = searcher.keep(("words", path), dict)
        self._numbers = np.empty((4, len(table.rows)), np.int64)
        self._weights = np.empty(4, np.float32)
        self._met = np.zeros(search.star.search.request.limit or 0, np.int64)
        self._known: list[KnownObjects] = []
        self._cells: list[tuple[int, int, NumberedCells]] = []  # place in the layout, source
        self._packed: dict[int, PackedCells] = {}  # by that place: what it has addresses of
        self._kept: list[Any] = []  # the arrays that the layout has addresses of
        self._layout = np.zeros(0, np.int64)

    def holds(self, state: State, columns: HitColumns) -> bool:
        """Whether nothing has changed since that it depends on."""
        if state.leaves is not self._leaves or not columns.is_present(self._generation):
            return False
        subjects = self._generation.subjects
        for column, known in zip(self._columns, self._known, strict=True):
            now = column.known(subjects)
            if now is None or now.objects is not known.objects or now.marks is not known.marks:
                return False
            if now.taking_in is not known.taking_in:
                return False
        return True

    # the words

    def terms(self, words: Sequence[str]) -> tuple[Longs, Floats] | None:
        """The numbers and the weights of their terms, the heaviest first. None where they are none, or take
        long to search.
        """
        known, found, postings = self._words, list[_Word](), 0
        for word in words:
            term = known.get(word) or self._word(word)
            if term is None:
                return None
            found.append(term)
            postings += term.postings
        if postings > _POSTINGS_MAX:
            return None
        count = len(found)
        if count == 1:
            return found[0].alone
        if count > len(self._weights):
            self._numbers = np.empty((2 * count, len(self._table.rows)), np.int64)
            self._weights = np.empty(2 * count, np.float32)
        found.sort(key=_ORDER)
        for place, term in enumerate(found):
            self._numbers[place], self._weights[place] = term.numbers, term.weight
        return self._numbers[:count], self._weights[:count]

    def _word(self, word: str) -> _Word | None:
        """None for one that is no term, or several."""
        terms, _ = self._searcher.analyzers.analyzer(ANALYZER).tokens(word)
        if len(terms) != 1:
            return None
        searcher, path, term = self._searcher, self._path, terms[0]
        known = searcher.known_terms(self._table, path, (term,))[0]
        alone = known.numbers[np.newaxis], np.array([known.weight], np.float32)
        if len(self._words) >= _WORDS_MAX:
            self._words.clear()
        made = _Word((-float(known.weight), term), known.weight, known.numbers, known.doc_freq, alone)
        self._words[word] = made
        return made

    # the rows

    def write(self, numbers: Longs, weights: Floats, out: NDArray[np.uint8]) -> tuple[int, int]:
        """See `word_rows.answer_of`."""
        table = self._table
        found: tuple[int, int] = word_rows.answer_of(
            table.rows, table.live, numbers, weights, self._inverse, self._layout, out
        )
        return found

    def lay_out(self, numbers: Sequence[Ints], known: list[KnownObjects]) -> None:
        """Write down where everything is. numbers: of the subjects of the documents of each leaf."""
        star, self._known = self._star, known
        parts = {f"?{name.name}": part for part, name in star.search.columns}
        names = tuple(name[1:] for name in star.columns)
        begin, _, end = frame_of(names, self._form)
        leads, tail = frame_of_row(names, self._form)
        layout: list[int] = [
            len(self._met),
            -1 if star.length is None else star.length,
            _ROWS_MAX,
            self._address(np.array([self._address(each) for each in numbers], np.int64)),
            self._address(self._met),
            len(star.patterns),
            len(star.columns),
            *self._bytes(begin.encode()),
            *self._bytes(tail.tobytes()),
            *self._bytes(end.encode()),
        ]
        sources: dict[object, int] = {}
        for source, (pattern, objects) in enumerate(zip(star.patterns, known, strict=True)):
            layout += self._pattern(pattern.terms[2], objects)
            sources[pattern.terms[2]] = source
        for name, lead in zip(star.columns, leads, strict=True):
            part = parts.get(name)
            if part == Part.SCORE:
                cell = FloatColumn(score_texts(np.ones(1, np.float32)), np.zeros(1, np.int64))
                front, _, back = cell.cells(self._form, KeptCells())[0].partition("1")
                layout += word_rows.SCORE, *self._bytes(lead.tobytes()), *self._bytes(front.encode())
                layout += self._bytes(back.encode())
                continue
            source = word_rows.SUBJECT if part == Part.SUBJECT else sources[name]
            cells = self._generation.subjects.cells if source < 0 else known[source].objects.cells
            self._cells.append((len(layout), source, cells))
            layout += source, *self._bytes(lead.tobytes()), 0, 0, 0, 0
        self._layout = np.array(layout, np.int64)
        self.make_cells(0)

    def _pattern(self, wanted: Any, known: KnownObjects) -> list[int]:
        """Its part of the layout."""
        objects = known.objects
        code = word_rows.ANY
        if not isinstance(wanted, str):
            code = objects.numbers.get(written(wanted), word_rows.NOWHERE)
        marks = [known.marks, known.taking_in]
        return [
            self._address(objects.starts),
            objects.size,
            self._address(objects.codes),
            *[number for each in marks for number in (self._address(each), len(each))],
            code,
        ]

    def make_cells(self, hits: int) -> None:
        """Make the cells that the rows of these hits, the last that were met, need."""
        met = self._met[:hits]
        for place, source, cells in self._cells:
            numbers = met[met >= 0]
            if source >= 0:
                objects = self._known[source].objects
                some = numbers[numbers < objects.size].tolist()
                parts = [objects.codes[objects.starts[each] : objects.starts[each + 1]] for each in some]
                numbers = np.concatenate([np.zeros(0, np.int64), *parts])
            packed = cells.of(numbers, self._form)
            self._layout[place + word_rows.BLOB : place + word_rows.COLUMN_SIZE] = (
                address_of(packed.blob),
                address_of(packed.starts),
                address_of(packed.lengths),
                len(packed.lengths),
            )
            self._packed[place] = packed

    def _address(self, array: NDArray[Any]) -> int:
        self._kept.append(array)
        return address_of(array)

    def _bytes(self, raw: bytes) -> tuple[int, int]:
        """Their address and size."""
        return self._address(np.frombuffer(raw + b"\0", np.uint8)), len(raw)


_ORDER = attrgetter("order")
