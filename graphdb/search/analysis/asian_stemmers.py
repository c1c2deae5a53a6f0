"""Stemmers of Arabic, Bengali, Hindi, Indonesian and Sorani.

Sources: Larkey, Ballesteros and Connell, "Light Stemming for Arabic Information Retrieval" (light10);
Ramanathan and Rao, "A Lightweight Stemmer for Hindi" (2003); Tala, "A Study of Stemming Effects on
Information Retrieval in Bahasa Indonesia" (2003); for Bengali and Sorani the endings that Lucene's stemmers
list.
"""

from graphdb.search.analysis.light_stemmers import Stem, chain, step

__all__ = ["ASIAN_STEMMERS"]

# Arabic: one article or conjunction at the beginning, and endings as long as they follow each other.

_ARABIC_PREFIXES = (
    "\u0627\u0644", "\u0648\u0627\u0644", "\u0628\u0627\u0644", "\u0643\u0627\u0644", "\u0641\u0627\u0644",
    "\u0644\u0644", "\u0648",
)  # fmt: skip
_ARABIC_ENDINGS = (
    "\u0647\u0627", "\u0627\u0646", "\u0627\u062a", "\u0648\u0646", "\u064a\u0646", "\u064a\u0647",
    "\u064a\u0629", "\u0647", "\u0629", "\u064a",
)  # fmt: skip


def _arabic(word: str) -> str:
    for prefix in _ARABIC_PREFIXES:
        if word.startswith(prefix) and len(word) >= max(len(prefix) + 2, 4):
            word = word[len(prefix) :]
            break
    for ending in _ARABIC_ENDINGS:
        if word.endswith(ending) and len(word) >= len(ending) + 2:
            word = word[: -len(ending)]
    return word


# Hindi, Bengali: the longest ending that leaves two letters.


def _longest(endings: str) -> Stem:
    words = endings.split()
    lengths = sorted({len(word) for word in words}, reverse=True)
    sets = [(length, frozenset(word for word in words if len(word) == length)) for length in lengths]

    def change(word: str) -> str:
        for length, of_length in sets:
            if len(word) > length + 1 and word[-length:] in of_length:
                return word[:-length]
        return word

    return change


_HINDI = _longest(
    """ाएंगी ाएंगे ाऊंगी ाऊंगा ाइयाँ ाइयों ाइयां
    ाएगी ाएगा ाओगी ाओगे एंगी ेंगी एंगे ेंगे ूंगी ूंगा ातीं नाओं नाएं ताओं ताएं ियाँ ियों ियां
    ाकर ाइए ाईं ाया ेगी ेगा ोगी ोगे ाने ाना ाते ाती ाता तीं ाओं ाएं ुओं ुएं ुआं
    कर ाओ िए ाई ाए ने नी ना ते ीं ती ता ाँ ां ों ें
    ो े ू ु ी ि ा"""
)
_BENGALI = _longest(
    """িয়াছিলাম িতেছিলাম িতেছিলেন ইতেছিলেন িয়াছিলেন ইয়াছিলেন
    িতেছিলি িতেছিলে িয়াছিলা িয়াছিলে িতেছিলা িয়াছিলি য়েদেরকে
    িতেছিস িতেছেন িয়াছিস িয়াছেন েছিলাম েছিলেন েদেরকে
    িতেছি িতেছা িতেছে ছিলাম ছিলেন িয়াছি িয়াছা িয়াছে েছিলে েছিলা য়েদের দেরকে
    িলাম িলেন িতাম িতেন িবেন ছিলি ছিলে ছিলা তেছে িতেছ খানা খানি গুলো গুলি য়েরা েদের
    লাম িলি ইলি িলে ইলে লেন িলা ইলা তাম িতি ইতি িতে ইতে তেন িতা িবা ইবা িবি ইবি বেন িবে ইবে ছেন য়োন য়ের েরা দের
    িস েন লি লে লা তি তে তা বি বে বা ছি ছা ছে ুন ুক টা টি নি ের রা কে
    ি ী া ো ে ব ত"""
)

# Sorani.

_SORANI = chain(
    step((5, "دا", ""), (4, "نا", "ن"), (6, "ەوە", "")),
    step((6, "مان|یان|تان", "")),
    step(
        (6, "ێکی", ""), (7, "یەکی", ""), (5, "ێک", ""), (6, "یەک", ""), (6, "ەکە", ""), (5, "کە", ""),
        (7, "ەکان", ""), (6, "کان", ""), (7, "یانی", ""), (6, "انی", ""), (6, "یان", ""), (5, "ان", ""),
        (7, "یانە", ""), (6, "انە", ""), (5, "ایە", "ا"), (5, "ەیە", "ە"), (4, "ە", ""), (4, "ی", ""),
    ),
)  # fmt: skip

# Indonesian: particles and possessives go from words of more than two syllables, then prefixes and suffixes.
# Which prefix went decides which suffix may.

_VOWELS = "aeiou"
_FIRST_PREFIXES = (
    # (prefix, what stands in its place, whether a vowel must follow, its kind)
    ("meng", "", False, "meng"), ("meny", "s", True, "meng"), ("men", "", False, "meng"),
    ("mem", "", False, "meng"), ("me", "", False, "meng"), ("peng", "", False, "peng"),
    ("peny", "s", True, "peng"), ("peny", "", False, "peng"), ("pen", "t", True, "peng"),
    ("pen", "", False, "peng"), ("pem", "", False, "peng"), ("di", "", False, "di"),
    ("ter", "", False, "ter"), ("ke", "", False, "ke"),
)  # fmt: skip
_SUFFIXES = (
    # (suffix, the prefixes that it does not go with)
    ("kan", frozenset({"ke", "peng", "pe"})),
    ("an", frozenset({"di", "meng", "ter"})),
    ("i", frozenset({"ber", "ke", "peng"})),
)


class _Indonesian:
    """One word on its way to its stem."""

    def __init__(self, word: str) -> None:
        self.word = word
        self._syllables = sum(char in _VOWELS for char in word)
        self._removed: set[str] = set()

    @property
    def _is_long(self) -> bool:
        return self._syllables > 2

    def stem(self) -> str:
        self._end("kah", "lah", "pun")
        self._end("ku", "mu", "nya")
        before = self.word
        self._first_prefix()
        if self.word != before:
            before = self.word
            self._suffix()
            if self.word != before:
                self._second_prefix()
        else:
            self._second_prefix()
            self._suffix()
        return self.word

    def _changed(self, word: str, kind: str = "") -> None:
        self.word = word
        self._syllables -= 1
        self._removed.add(kind)

    def _end(self, *ends: str) -> None:
        found = next((end for end in ends if self.word.endswith(end)), None)
        if found is not None and self._is_long:
            self._changed(self.word[: -len(found)])

    def _first_prefix(self) -> None:
        if not self._is_long:
            return
        for prefix, instead, before_vowel, kind in _FIRST_PREFIXES:
            is_before_vowel = self.word[len(prefix) : len(prefix) + 1] in tuple(_VOWELS)
            if self.word.startswith(prefix) and (is_before_vowel or not before_vowel):
                return self._changed(instead + self.word[len(prefix) :], kind)

    def _second_prefix(self) -> None:
        word = self.word
        if not self._is_long:
            return
        if word.startswith("ber") or word == "belajar":
            self._changed(word[3:], "ber")
        elif word.startswith("be") and word[3:5] == "er" and word[2] not in _VOWELS:
            self._changed(word[2:], "ber")
        elif word.startswith("per") or word == "pelajar":
            self._changed(word[3:])
        elif word.startswith("pe"):
            self._changed(word[2:], "pe")

    def _suffix(self) -> None:
        if not self._is_long:
            return
        for suffix, without in _SUFFIXES:
            ends = self.word.endswith(suffix) and not (suffix == "i" and self.word.endswith("si"))
            if ends and not without & self._removed:
                return self._changed(self.word[: -len(suffix)])


def _indonesian(word: str) -> str:
    return _Indonesian(word).stem()


ASIAN_STEMMERS: dict[str, Stem] = {
    "arabic": _arabic,
    "bengali": _BENGALI,
    "hindi": _HINDI,
    "indonesian": _indonesian,
    "sorani": _SORANI,
}
"""By the names that the filter `stemmer` takes."""
