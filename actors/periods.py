"""When periodic work is done: at the same moments on all loops and in all processes of a machine.

A wake-up costs a processor at rest more than what is done in it. Those that come together cost it once.
"""

import time

__all__ = ["until_whole"]

_TOO_SOON = 0.1  # of a period: a timer may go off a little early, and is not to be set again for the rest


def until_whole(period_s: float) -> float:
    """Seconds until the monotonic clock, which all processes share, shows a whole number of periods; one
    more where that is at once.
    """
    left = period_s - time.monotonic() % period_s
    return left if left > _TOO_SOON * period_s else left + period_s
