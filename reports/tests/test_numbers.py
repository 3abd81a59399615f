"""Numbers round as people expect, and never towards a better claim."""
import pytest

from fsbl_reports import numbers


@pytest.mark.parametrize("value, text", [
    (0, "0"), (52.319, "52.3"), (9.996, "10.0"), (99.96, "100"), (999.6, "1000"), (14573.6, "14600"), (0.04047, "0.0405"),
    (0.000123456, "0.000123"), (1, "1.00"), (-3.14159, "-3.14"), (1e9, "1000000000"),
])
def test_significant(value, text):
    assert numbers.significant(value) == text


def test_significant_is_within_half_a_percent():
    for i in range(1, 5000):
        value = i * 0.37
        assert abs(float(numbers.significant(value)) - value) <= 0.005 * value * 1.0001


@pytest.mark.parametrize("value, text", [
    (0.75, "75 %"), (0.9375, "93.75 %"), (0.5, "50 %"), (0.95, "95 %"), (0.949999, "94.99 %"), (0.9609375, "96.09 %"), (1, "100 %"),
])
def test_level_is_never_rounded_up(value, text):
    assert numbers.level(value) == text


def test_interval():
    item = {"lo": 51871, "hi": 52543, "level": 0.75, "method": "range"}
    assert numbers.interval(item, 1e3) == "[51.9, 52.5] 75 % range"
    assert numbers.interval(None) is None
    assert numbers.interval({**item, "hi": None}) is None


@pytest.mark.parametrize("count, text", [(64, "64 B"), (1000, "1000 B"), (65536, "64 KiB"), (1 << 20, "1 MiB"), (3 << 30, "3 GiB")])
def test_size(count, text):
    assert numbers.size(count) == text
