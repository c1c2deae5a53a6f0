"""Request ids: UUIDs that tell how they were made."""

import os
from uuid import UUID

from graphdb.log.request_ids import FreshIds, fresh, is_keyed, key_part, keyed


def test_a_fresh_id_is_a_random_uuid() -> None:
    made = fresh(bytes([255] * 16))
    assert UUID(bytes=made).version == 4
    assert made == UUID("ffffffff-ffff-4fff-bfff-ffffffffffff").bytes
    assert not is_keyed(made)
    assert key_part(made) == made


def test_fresh_ids_are_made_of_random_bytes_that_are_used_once() -> None:
    drawn: list[bytes] = []

    def random(size: int) -> bytes:
        drawn.append(os.urandom(size))
        return drawn[-1]

    fresh_id = FreshIds(random)
    made = {fresh_id() for _ in range(1000)}
    assert len(made) == 1000
    pieces = [all_[start : start + 16] for all_ in drawn for start in range(0, len(all_), 16)]
    assert made <= {fresh(piece) for piece in pieces}


def test_a_keyed_id_is_the_same_everywhere() -> None:
    made = keyed("key", "POST", b"/update?", (b"text",))
    assert made == UUID("19c35430-f8af-8195-b6f2-47bfd2506989").bytes
    assert UUID(bytes=made).version == 8
    assert is_keyed(made)


def test_halves_stand_for_the_key_and_for_the_request() -> None:
    one = keyed("key", "POST", b"/update?", (b"a", b"b"))
    same_key = [
        keyed("key", "POST", b"/update?", told_by) for told_by in ((b"ab",), (b"a",), (b"a", b"b", b""))
    ]
    others = [
        keyed("kez", "POST", b"/update?", (b"a", b"b")),
        keyed("key", "PUT", b"/update?", (b"a", b"b")),
        keyed("key", "POST", b"/update?x", (b"a", b"b")),
        keyed("keyP", "OST", b"/update?", (b"a", b"b")),
    ]
    assert {key_part(made) for made in same_key} == {key_part(one)}
    assert len({one, *same_key}) == 4
    assert len({key_part(made) for made in [one, *others]}) == 5
    assert {made[8:] for made in others} == {one[8:]}


def test_the_key_of_another_sender_is_another() -> None:
    made = [
        keyed("key", "POST", b"/", (), sender) for sender in ((), ("jwt", "ann"), ("jwt", "bob"), ("jwtann",))
    ]
    assert len({key_part(one) for one in made}) == 4
