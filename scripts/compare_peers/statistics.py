"""Paired comparisons over blocks. Pure: numbers in, numbers out.

A block has every member once, so what drifts over minutes is in both numbers of a pair. The ratio of a pair is the
geometric mean of the blocks' ratios; its interval is Student's t on the logarithms of those ratios.
"""
import math

LEVEL = 0.95
RATIO_METHOD = "Student t on paired log-ratios"
FIELLER_METHOD = "Fieller's theorem on paired differences, Student t"


def t_cdf(t, freedom):
    """P(T <= t) for a whole number of degrees of freedom: the finite series of Abramowitz & Stegun, 26.7.3-4."""
    if freedom < 1 or freedom != int(freedom):
        raise ValueError(f"degrees of freedom: {freedom} is not a whole number >= 1")
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    if freedom % 2:
        term, total = cosine, 0.0
        for k in range(3, int(freedom) + 1, 2):
            total += term
            term *= cosine * cosine * (k - 1) / k
        inside = (angle + sine * total) * 2 / math.pi
    else:
        term, total = 1.0, 0.0
        for k in range(2, int(freedom) + 1, 2):
            total += term
            term *= cosine * cosine * (k - 1) / k
        inside = sine * total
    return (1 + inside) / 2


def t_quantile(probability, freedom):
    """The t with P(T <= t) = probability, by bisection to the last digit that a float has."""
    if not 0 < probability < 1:
        raise ValueError(f"probability: {probability} is not between 0 and 1")
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    low, high = 0.0, 1.0
    while t_cdf(high, freedom) < probability:
        high *= 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        low, high = (middle, high) if t_cdf(middle, freedom) < probability else (low, middle)


def mean(values):
    return math.fsum(values) / len(values)


def covariance(first, second):
    """Sample covariance; of a list with itself, its variance."""
    a, b = mean(first), mean(second)
    return math.fsum((x - a) * (y - b) for x, y in zip(first, second)) / (len(first) - 1)


def mean_interval(values, level=LEVEL):
    """(mean, lo, hi) by Student's t."""
    if len(values) < 2:
        raise ValueError(f"an interval needs two values at least, not {len(values)}")
    middle = mean(values)
    half = t_quantile((1 + level) / 2, len(values) - 1) * math.sqrt(covariance(values, values) / len(values))
    return middle, middle - half, middle + half


def geometric_mean(values):
    return math.exp(mean([math.log(value) for value in values]))


def paired_ratio(over, under, level=LEVEL):
    """(ratio, lo, hi) of over/under, block by block."""
    if len(over) != len(under):
        raise ValueError(f"pairs: {len(over)} values beside {len(under)}")
    if not all(value > 0 and math.isfinite(value) for value in [*over, *under]):
        raise ValueError("a ratio needs finite values above 0")
    return tuple(math.exp(x) for x in mean_interval([math.log(a / b) for a, b in zip(over, under)], level))


def fieller_ratio(over, under, level=LEVEL):
    """(mean(over)/mean(under), lo, hi) for paired values of any sign; lo and hi are None where the data can't bound
    the ratio, because the denominator may be 0 (Fieller 1954)."""
    if len(over) != len(under) or len(over) < 2:
        raise ValueError("Fieller's interval needs two pairs at least")
    n = len(over)
    a, b = mean(over), mean(under)
    square = t_quantile((1 + level) / 2, n - 1) ** 2 / n
    # {r : (a - r b)^2 <= square * var(over - r under)} is bounded only if b is away from 0.
    quadratic = b * b - square * covariance(under, under)
    half_linear = a * b - square * covariance(over, under)
    constant = a * a - square * covariance(over, over)
    if b <= 0 or quadratic <= 0:
        return (a / b if b else None), None, None
    root = math.sqrt(max(0.0, half_linear * half_linear - quadratic * constant))
    return a / b, (half_linear - root) / quadratic, (half_linear + root) / quadratic


def verdict_at_least(interval, bound):
    """Of "at least bound": met or missed when the whole interval says so, else undecided."""
    lo, hi = interval
    if lo is None or hi is None:
        return "undecided"
    return "met" if lo >= bound else "missed" if hi < bound else "undecided"


def verdict_not_below(interval, bound):
    """Of "not wholly below bound"."""
    lo, hi = interval
    if lo is None or hi is None:
        return "undecided"
    return "met" if hi >= bound else "missed"
