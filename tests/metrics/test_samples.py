"""Labels of what peers name: so many, and no two series alike."""

from prometheus_client.parser import text_string_to_metric_families

from metrics.catalogue import ACTIVE_BROKERS
from metrics.metric import NAMED, OTHER
from metrics.samples import Sample, named, text


def test_all_are_named_where_they_are_few() -> None:
    assert named({"b": 2.0, "a": 1.0}, min) == {"a": 1.0, "b": 2.0}


def test_what_is_not_named_is_joined() -> None:
    values = {f"{number:03}": float(number) for number in range(NAMED + 3)}
    shown = named(values, min)
    assert len(shown) == NAMED + 1
    assert (shown["000"], shown[OTHER]) == (0.0, float(NAMED))


def test_a_name_that_is_that_of_all_others_is_one_of_them() -> None:
    values = {f"{number:03}": float(number) for number in range(NAMED)} | {OTHER: -1.0, "zzz": 7.0}
    assert named(values, min)[OTHER] == -1.0


def test_names_that_peers_chose_break_no_scrape() -> None:
    """Half a surrogate pair, which JSON can spell, what acts on a terminal, and the names that these would be shown as;
    a name that is there twice, once."""
    controls = "\x1b]0;x\x07\x1b[2J\x00\x9b\x7f\u202e\u2028"
    escaped = "\\x1b]0;x\\x07\\x1b[2J\\x00\\x9b\\x7f\\u202e\\u2028"
    names = ("\ud800", "\\ud800", controls, escaped, '\n"', "plain", "plain", "Größe")
    samples = [Sample(ACTIVE_BROKERS, (name, "master"), 1) for name in names]
    lines = text(samples, "default")
    assert lines.replace("\n", "").isprintable()
    (family,) = text_string_to_metric_families(lines)
    doubled = escaped.replace("\\", "\\\\")
    assert [sample.labels["cluster"] for sample in family.samples] == [
        *("\\ud800", "\\\\ud800", escaped, doubled, '\\n"', "plain", "Größe")
    ]
