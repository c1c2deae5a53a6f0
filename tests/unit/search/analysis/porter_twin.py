"""Porter's stemmer step by step, as his paper and the two departures of his own program say."""

import re

__all__ = ["stem"]

STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate",
    "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al",
    "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
STEP_4 = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize"  # longest wins


def shape(word: str) -> str:
    """v and c for each letter; y is a vowel after a consonant."""
    result = ""
    for number, char in enumerate(word):
        vowel = char in "aeiou" or (char == "y" and number > 0 and result[-1] == "c")
        result += "v" if vowel else "c"
    return result


def measure(word: str) -> int:
    return len(re.findall("v+c+", shape(word)))


def ends_cvc(word: str) -> bool:
    return shape(word).endswith("cvc") and word[-1] not in "wxy"


def longest(word: str, suffixes: list[str]) -> str | None:
    fitting = [suffix for suffix in suffixes if word.endswith(suffix)]
    return max(fitting, key=len, default=None)


def step_1(word: str) -> str:
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if not word.endswith("eed"):
        word = step_1b(word)
    elif measure(word[:-3]) > 0:
        word = word[:-1]
    if word.endswith("y") and "v" in shape(word[:-1]):
        word = word[:-1] + "i"
    return word


def step_1b(word: str) -> str:
    suffix = longest(word, ["ed", "ing"])
    if suffix is None or "v" not in shape(word[: -len(suffix)]):
        return word
    word = word[: -len(suffix)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and shape(word)[-1] == "c" and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if measure(word) == 1 and ends_cvc(word) else word


def step_5(word: str) -> str:
    if word.endswith("e"):
        size = measure(word[:-1])
        if size > 1 or (size == 1 and not ends_cvc(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and measure(word[:-1]) > 1 else word


def stem(word: str) -> str:
    if len(word) < 3:
        return word
    word = step_1(word)
    for table in (STEP_2, STEP_3):
        suffix = longest(word, list(table))
        if suffix and measure(word[: -len(suffix)]) > 0:
            word = word[: -len(suffix)] + table[suffix]
    suffix = longest(word, STEP_4.split())
    if suffix:
        rest = word[: -len(suffix)]
        if measure(rest) > 1 and (suffix != "ion" or rest.endswith(("s", "t"))):
            word = rest
    return step_5(word)
