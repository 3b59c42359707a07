"""Codes, languages and versions by their names."""

import pytest

from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.language import LanguageCode
from rocketmq_remoting.version import CURRENT, V3_0_11, V4_9_4, V5_0_0, V5_3_1, version_name


@pytest.mark.parametrize(
    ("ordinal", "name"),
    [
        (-1, "V3_0_0_SNAPSHOT"),
        (0, "V3_0_0_SNAPSHOT"),
        (1, "V3_0_0_ALPHA1"),
        (15, "V3_0_0_FINAL"),
        (36, "V3_0_11_SNAPSHOT"),
        (V3_0_11, "V3_0_11"),
        (46, "V3_1_0_SNAPSHOT"),
        (85, "V3_2_9"),
        (86, "V3_3_1_SNAPSHOT"),
        (211, "V3_9_9"),
        (213, "V4_0_0"),
        (317, "V4_5_2"),
        (333, "V4_6_0"),
        (373, "V4_8_0"),
        (V4_9_4, "V4_9_4"),
        (409, "V4_9_8"),
        (V5_0_0, "V5_0_0"),
        (V5_3_1, "V5_3_1"),
        (479, "V5_3_3"),
        (CURRENT, "V5_5_0"),
        (611, "V5_9_9"),
        (612, "HIGHER_VERSION"),
        (613, "HIGHER_VERSION"),
        (2**31 - 1, "HIGHER_VERSION"),
    ],
)
def test_a_version_has_the_name_java_gives_it(ordinal: int, name: str) -> None:
    assert version_name(ordinal) == name


def test_the_codes_a_name_server_knows() -> None:
    assert {code.value for code in RequestCode} - {34, 35, 40, 47, 905} == {
        *(100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 217, 219, 224),
        *(304, 311, 312, 313, 318, 319, 322, 327, 901, 904, 19876),
    }
    assert {code.value for code in ResponseCode} == {0, 1, 2, 3, 16, 17, 22, 1500}
    assert [language.value for language in LanguageCode] == list(range(14))
