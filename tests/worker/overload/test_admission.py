"""Which class of requests each request code is in: a new one has to be placed here."""

from registry.options.catalogue import Options
from worker.dispatch import HANDLERS
from worker.overload.admission import Admission
from worker.overload.known_hosts import KnownHosts


def test_every_code_is_in_the_class_of_what_it_costs() -> None:
    admission = Admission(KnownHosts(), Options())
    lists = {206, 219, 224, 304, 311, 312, 313, 319}
    rewrites = {205, 216, 217, 327}
    others = {100, 101, 102, 103, 104, 106, 318, 322, 901, 904, 19876}
    places = {
        **dict.fromkeys({105}, admission.routes),
        **dict.fromkeys(lists, admission.lists),
        **dict.fromkeys(rewrites, admission.rewrites),
        **dict.fromkeys(others, admission.others),
    }
    assert {int(code): admission.class_of(code) for code in HANDLERS} == places
