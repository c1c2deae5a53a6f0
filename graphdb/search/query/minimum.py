"""`minimum_should_match`: how many of the optional clauses a document has to match.

Source: Elasticsearch's reference, "minimum_should_match parameter".
"""

import re

import numpy as np

from graphdb.search.query.clause import number_format

__all__ = ["minimum_should_match"]


def minimum_should_match(optional: int, text: str) -> int:
    """What a specification such as 3, -2, 75%, -25%, 2<75% or 2<-25% 9<-3 means for so many clauses.

    May be more than there are; nothing matches then.
    """
    text = re.sub(r"\s*<\s*", "<", text.strip())
    if "<" not in text:
        return _simple(optional, text)
    result = optional
    for part in text.split():
        bound, _, rest = part.partition("<")
        if optional <= _integer(bound):
            return result
        result = _simple(optional, rest)
    return result


def _simple(optional: int, text: str) -> int:
    if text.endswith("%"):
        hundredth = np.float32(1) / np.float32(100)
        share = int(np.float32(optional * _integer(text[:-1])) * hundredth)  # towards zero, as Java's cast
        return max(0, optional + share if text.startswith("-") else share)
    number = _integer(text)
    return max(0, optional + number if number < 0 else number)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise number_format(text) from None
