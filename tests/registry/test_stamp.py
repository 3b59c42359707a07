"""A stamp is valid until the generation moves or the time has come."""

from registry.caching.stamp import Stamp


class Source:
    generation = 7


def test_it_is_valid_until_its_time() -> None:
    stamp = Stamp(Source(), 10.0)
    assert stamp.is_valid(9.9)
    assert not stamp.is_valid(10.0)
    assert Stamp(Source()).is_valid(1e12)


def test_it_is_valid_until_the_generation_moves() -> None:
    source = Source()
    stamp = Stamp(source)
    source.generation += 1
    assert not stamp.is_valid(0.0)


def test_it_is_renewed_to_what_was_noted_when_the_store_was_asked() -> None:
    source = Source()
    stamp = Stamp(source, 1.0)
    source.generation += 1
    asked = source.generation
    stamp.renew(asked, 5.0)
    assert stamp.is_valid(4.0)
    source.generation += 1
    stamp.renew(asked, 5.0)
    assert not stamp.is_valid(4.0), "something changed while the store was asked"
