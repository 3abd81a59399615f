"""Numbers as people read them. Nothing here rounds towards a better claim."""
import math

METHODS = {  # how an interval was made, short enough for a table
    "range": "range",
    "order statistics": "order",
}


def significant(value, digits=3):
    """Three significant digits, without exponent: 41.2, 412, 4120, 0.0412."""
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    if rounded != 0:  # 9.996 has become 10.0
        decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(decimals, 0)}f}"


def level(value):
    """A coverage in percent, rounded down: 94.97 never reads 95."""
    percent = math.floor(value * 10000 + 1e-9) / 100
    return f"{percent:.2f}".rstrip("0").rstrip(".") + " %"


def method(name):
    """The short name that stands in tables; Student's t is named so, its assumption in the legend."""
    return METHODS.get(name, "t" if name.startswith("t on") else name)


def interval(item, scale=1.0):
    """`[lo, hi] 75 % range`."""
    if not item or item.get("lo") is None or item.get("hi") is None:
        return None
    low, high = significant(item["lo"] / scale), significant(item["hi"] / scale)
    return f"[{low}, {high}] {level(item['level'])} {method(item['method'])}"


def size(count):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


def seconds(nanoseconds):
    value = nanoseconds / 1e9
    return f"{value:g} s"


SCALES = {  # unit in the result file: (unit in tables, divisor)
    "ns": ("µs", 1e3),
    "bit/s": ("Gbit/s", 1e9),
}


def scale_of(unit):
    return SCALES.get(unit, (unit, 1.0))
