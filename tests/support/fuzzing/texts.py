"""Random SPARQL texts: sentences of the grammar, mutated ones, and mutated texts of the suites."""

from random import Random

from tests.support.fuzzing.grammar import write_sentence
from tests.support.fuzzing.mutations import mutated
from tests.support.fuzzing.seeds import text_seeds

__all__ = ["RULES", "random_text"]

RULES = ("query_unit", "update_unit")
TOKENS = (10, 20, 40, 80, 150)


def random_text(random: Random, rule: str | None = None) -> bytes:
    """A text; with a rule ("query_unit" or "update_unit") one that is likely to begin as such."""
    if random.random() < 0.7:
        text = write_sentence(random, rule or random.choice(RULES), random.choice(TOKENS)).encode()
        if random.random() < 0.8:
            return text
    else:
        text = random.choice(text_seeds())
    return mutated(random, text, text_seeds())
