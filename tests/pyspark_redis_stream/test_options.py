"""Options that cannot be used are named, and nothing secret is shown."""

import pytest

from pyspark_redis_stream.ids import LAST_N, Id, parsed
from pyspark_redis_stream.options import options_of

URL = "redis://:secret@127.0.0.1:1/0"
FEWEST = {"url": URL, "streams": "a"}


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"streams": "a"}, "needs option url"),
        ({"url": URL}, "streams"),
        ({**FEWEST, "pattern": "b*"}, "either option streams"),
        ({**FEWEST, "stream": "b"}, "no option stream"),
        ({**FEWEST, "page": "0"}, "option page"),
        ({**FEWEST, "maxEntriesPerBatch": "many"}, "option maxentriesperbatch"),
        ({**FEWEST, "from": "5-x"}, "option from"),
        ({**FEWEST, "after": "5-0"}, "option after"),
        ({**FEWEST, "lost": "maybe"}, "option lost"),
        ({**FEWEST, "tlsHostname": "no"}, "option tlshostname"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], reported: str) -> None:
    with pytest.raises(ValueError, match=reported) as failure:
        options_of(given)
    assert "secret" not in str(failure.value)


def test_options_are_read() -> None:
    bounds = {"FROM": "7", "to": "9", "after": '{"a": "8-1"}'}
    options = options_of({**FEWEST, **bounds, "streams": " a, b ", "partitions": "2", "lost": "ignore"})
    assert options.streams == ("a", "b")
    assert (options.first, options.last) == (Id(7), Id(9, LAST_N))
    assert options.after == {"a": Id(8, 1)}
    assert (options.partitions, options.reread_lost, options.max_entries) == (2, False, None)


@pytest.mark.parametrize("at", [Id(5, 3), Id(5, 0), Id(5, LAST_N), Id(0, 1)])
def test_ids_next_to_each_other(at: Id) -> None:
    assert at.after.before == at
    assert at.before.after == at
    assert at.before < at < at.after
    assert parsed(str(at)) == at
