"""The cache keeps no more entries, and no more characters, than it may."""

from graphdb.bounded_cache import BoundedCache


def test_cache_is_bounded_by_number_and_characters() -> None:
    cache: BoundedCache[str] = BoundedCache(entries_max=3, chars_max=40)
    for text in ("a", "b", "c"):
        cache.put(text, None, text)
    assert cache.get("a", None) == "a"  # now b is the oldest
    cache.put("d", None, "d")
    assert [cache.get(text, None) for text in "abcd"] == ["a", None, "c", "d"]
    cache.put("x" * 11, None, "too long")
    assert cache.get("x" * 11, None) is None
    for text in ("e" * 10, "f" * 10, "g" * 10):
        cache.put(text, None, text)
    assert cache.get("d", None) is None
    wide: BoundedCache[str] = BoundedCache(entries_max=99, chars_max=40)
    for letter in "abcde":
        wide.put(letter * 10, None, letter)
    assert [wide.get(letter * 10, None) for letter in "abcde"] == [None, "b", "c", "d", "e"]
