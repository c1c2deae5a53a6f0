"""Answering futures whose callers may have gone meanwhile."""

from concurrent.futures import Future
from typing import TypeVar

__all__ = ["answer", "fail"]

T = TypeVar("T")


def answer(future: "Future[T]", value: T) -> None:
    """Give a result to whoever still waits."""
    if not future.done() and future.set_running_or_notify_cancel():
        future.set_result(value)


def fail(future: "Future[T]", error: BaseException) -> None:
    """Give an error to whoever still waits."""
    if not future.done() and future.set_running_or_notify_cancel():
        future.set_exception(error)
