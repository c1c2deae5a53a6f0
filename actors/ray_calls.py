"""`RayProcess`: an actor of shards, column or index, as those call it who know nothing of Ray."""

from typing import Any

import ray

from actors.columns.shard_calls import Result, ShardLost

__all__ = ["RayProcess"]


class RayProcess:
    """See `ShardProcess`."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def call(self, method: str, *arguments: Any, results: int = 1) -> list[Result]:
        made = [each.reference if isinstance(each, RayResult) else each for each in arguments]
        remote = getattr(self._actor, method)
        if results == 1:  # options make another remote function each time
            return [RayResult(remote.remote(*made))]
        return [RayResult(each) for each in remote.options(num_returns=results).remote(*made)]

    def kill(self) -> None:
        ray.kill(self._actor)


class RayResult:
    """See `Result`."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def value(self, timeout_s: float) -> Any:
        try:
            return ray.get(self.reference, timeout=timeout_s)
        except ray.exceptions.GetTimeoutError as error:
            raise TimeoutError from error
        except ray.exceptions.RayTaskError as error:
            cause: Any = error.cause
            while isinstance(cause, ray.exceptions.RayTaskError):  # of what was among the arguments
                cause = cause.cause
            if isinstance(cause, ray.exceptions.RayError):
                raise ShardLost(_in_a_line(cause)) from None
            raise cause from None
        except ray.exceptions.RayError as error:
            raise ShardLost(_in_a_line(error)) from None


def _in_a_line(error: Exception) -> str:
    """The last words of what Ray says."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip() if "Error" in lines[-1] else lines[0].strip()
