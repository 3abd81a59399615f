"""Statistics of compare-peers against published tables, closed forms and brute force."""
import math
import random

import pytest

from compare_peers import statistics

# Two-sided 95 % and 99 % points of Student's t, as every table prints them.
TABLE = [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 3, 3.182), (0.975, 4, 2.776), (0.975, 5, 2.571),
         (0.975, 6, 2.447), (0.975, 7, 2.365), (0.975, 8, 2.306), (0.975, 9, 2.262), (0.975, 10, 2.228),
         (0.975, 20, 2.086), (0.975, 30, 2.042), (0.975, 120, 1.980), (0.995, 1, 63.657), (0.995, 5, 4.032),
         (0.995, 7, 3.499), (0.95, 7, 1.895), (0.9, 4, 1.533)]


@pytest.mark.parametrize("probability, freedom, expected", TABLE)
def test_t_quantile_is_the_table_s(probability, freedom, expected):
    assert statistics.t_quantile(probability, freedom) == pytest.approx(expected, abs=6e-4)
    assert statistics.t_quantile(1 - probability, freedom) == pytest.approx(-expected, abs=6e-4)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 8, 31])
def test_t_cdf_is_the_integral_of_its_density(freedom):
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    steps, upper = 20000, 2.7  # Simpson's rule from 0
    values = [scale * (1 + (upper * i / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1)]
    integral = upper / steps / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))
    assert statistics.t_cdf(upper, freedom) == pytest.approx(0.5 + integral, abs=1e-10)
    assert statistics.t_cdf(-upper, freedom) == pytest.approx(0.5 - integral, abs=1e-10)


def test_t_refuses_what_it_can_t():
    for bad in (0, -1, 2.5):
        with pytest.raises(ValueError):
            statistics.t_cdf(1.0, bad)
    for bad in (0, 1, -0.1):
        with pytest.raises(ValueError):
            statistics.t_quantile(bad, 5)


def test_mean_interval_by_hand():
    # mean 3, variance 2.5, standard error sqrt(0.5), t(0.975, 4) = 2.776445
    middle, lo, hi = statistics.mean_interval([1, 2, 3, 4, 5])
    assert middle == 3
    assert (lo, hi) == pytest.approx((3 - 1.963243, 3 + 1.963243), abs=1e-5)


def test_paired_ratio_by_hand():
    # log-ratios log 2 and log 8: mean log 4, standard error log 2, t(0.975, 1) = 12.706205
    ratio, lo, hi = statistics.paired_ratio([2, 8], [1, 1])
    assert ratio == pytest.approx(4)
    assert (lo, hi) == pytest.approx((4 * 2 ** -12.706205, 4 * 2 ** 12.706205), rel=1e-5)


def test_paired_ratio_sees_through_drift_that_both_share():
    drift = [1.0, 1.4, 0.7, 2.0, 0.5, 1.1]
    ratio, lo, hi = statistics.paired_ratio([1.1 * d for d in drift], drift)
    assert ratio == pytest.approx(1.1) and lo == pytest.approx(1.1) and hi == pytest.approx(1.1)


def test_paired_ratio_turned_round_is_its_reciprocal():
    a, b = [3.0, 4.0, 5.5, 2.2], [2.5, 4.4, 4.0, 2.0]
    ratio, lo, hi = statistics.paired_ratio(a, b)
    turned = statistics.paired_ratio(b, a)
    assert turned == pytest.approx((1 / ratio, 1 / hi, 1 / lo))
    assert ratio == pytest.approx(statistics.geometric_mean(a) / statistics.geometric_mean(b))


def test_paired_ratio_refuses():
    for over, under in (([1, 2], [1]), ([1, 0], [1, 1]), ([1, math.inf], [1, 1]), ([1], [1]), ([1, -2], [1, 1])):
        with pytest.raises(ValueError):
            statistics.paired_ratio(over, under)


def test_interval_covers_as_often_as_it_says():
    draw = random.Random(5)
    hits = 0
    for _ in range(2000):
        ratios = [math.exp(draw.gauss(0.1, 0.2)) for _ in range(6)]
        _, lo, hi = statistics.paired_ratio(ratios, [1.0] * 6)
        hits += lo <= math.exp(0.1) <= hi
    assert 0.935 <= hits / 2000 <= 0.965  # three standard errors around 0.95


def test_fieller_bounds_are_where_the_difference_s_interval_touches_zero():
    over, under = [5.1, 4.7, 5.4, 5.0, 4.4, 5.2], [2.1, 1.9, 2.6, 2.0, 1.7, 2.2]
    ratio, lo, hi = statistics.fieller_ratio(over, under)
    assert ratio == pytest.approx(statistics.mean(over) / statistics.mean(under))
    for bound in (lo, hi):
        _, low, high = statistics.mean_interval([a - bound * b for a, b in zip(over, under)])
        assert min(abs(low), abs(high)) == pytest.approx(0, abs=1e-9)
    assert lo < ratio < hi


def test_fieller_with_an_exact_denominator_is_the_plain_interval():
    middle, lo, hi = statistics.mean_interval([4.0, 5.0, 6.0])
    assert statistics.fieller_ratio([4.0, 5.0, 6.0], [2.0, 2.0, 2.0]) == pytest.approx((middle / 2, lo / 2, hi / 2))


def test_fieller_has_no_bounds_when_the_denominator_may_be_nothing():
    ratio, lo, hi = statistics.fieller_ratio([1.0, 1.1, 0.9], [0.1, -0.1, 0.05])
    assert ratio == pytest.approx(60) and lo is None and hi is None
    assert statistics.fieller_ratio([1.0, 1.1], [-0.5, -0.6])[1:] == (None, None)
    assert statistics.fieller_ratio([1.0, 1.1], [1.0, -1.0]) == (None, None, None)


@pytest.mark.parametrize("interval, at_least, not_below", [
    ((1.0, 1.2), "met", "met"), ((0.9, 1.1), "undecided", "met"), ((0.8, 1.0), "undecided", "met"),
    ((0.8, 0.99), "missed", "missed"), ((None, None), "undecided", "undecided")])
def test_verdicts(interval, at_least, not_below):
    assert statistics.verdict_at_least(interval, 1.0) == at_least
    assert statistics.verdict_not_below(interval, 1.0) == not_below
