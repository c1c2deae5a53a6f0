"""`Begun`: what there is to do while one waits for something that is under way."""

import logging
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, TypeVar

__all__ = ["Begun"]

T = TypeVar("T")
log = logging.getLogger(__name__)


class Begun(Generic[T]):
    """Await this in place of something: the same, but `meanwhile` is called once that has begun to wait.

    So what has been sent is on its way before the call, which costs no turn of the event loop. meanwhile is
    not called where nothing is waited for; what it raises is logged.
    """

    def __init__(self, awaited: Awaitable[T], meanwhile: Callable[[], None]) -> None:
        self._awaited, self._meanwhile = awaited, meanwhile

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._awaited.__await__()
        step: Callable[[], Any] = partial(next, steps)
        has_begun = False
        while True:
            try:
                waits_for = step()
            except StopIteration as ended:
                result: T = ended.value
                return result
            if not has_begun:
                has_begun = True
                self._call()
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 what is awaited gets it
                step = partial(steps.throw, error)
            else:
                step = partial(steps.send, sent)

    def _call(self) -> None:
        try:
            self._meanwhile()
        except Exception:
            log.exception("what was to be done meanwhile failed")
