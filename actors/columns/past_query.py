"""`PastQuery`: a query of a state of the past, on what the column view keeps of it."""

from actors.columns.column_query import ColumnQuery, Unsuited
from actors.columns.column_query import NotTaken as NotTakenError
from actors.columns.cursors import Cursors
from actors.columns.database import OpenView
from actors.columns.past_views import StillChanging
from actors.columns.protocol import ColumnTask, ViewSettings
from graphdb.columns.catalog import Catalog
from graphdb.columns.past_state import NotKept, TooLarge

__all__ = ["PastQuery"]


class PastQuery(ColumnQuery):
    """As any other query; its cursors are for others of the same state."""

    def __init__(self, view: OpenView, task: ColumnTask, settings: ViewSettings) -> None:
        super().__init__(view, task, settings)
        assert task.as_of is not None
        self._as_of, self._wait_s = task.as_of, settings.wait_seconds

    def _known(self) -> tuple[int, Catalog] | None:
        catalog = self._view.past.known(self._as_of)
        return None if catalog is None else (self._as_of, catalog)

    def _begun(self) -> Catalog:
        past = self._view.past
        self._cursors = past.take(self._as_of) or self._view.fresh()
        self.log_index = self._as_of
        try:
            catalog = past.begin(self._cursors, self._as_of, self._wait_s, self._check)
        except (NotKept, TooLarge) as reason:
            raise Unsuited(str(reason)) from reason
        except StillChanging as reason:
            raise NotTakenError(str(reason)) from reason
        if self._is_united(catalog):
            raise Unsuited("the default graph is the union of all graphs, and there are named graphs")
        return catalog

    def _leave(self, cursors: Cursors) -> None:
        self._view.past.give_back(cursors, self._as_of)
