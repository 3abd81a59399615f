"""What is compared with what, and what each comparison is held against. Pure: measured values in, results out."""
from dataclasses import dataclass
from typing import Optional

from . import statistics


@dataclass(frozen=True)
class Bar:
    """What fsbl means to reach. `kind` at_least: the whole interval at or above `bound` is met, wholly below is missed.
    not_below: anything but wholly below is met. A missed bar is information; the exit code stays 0."""
    kind: str
    bound: float
    aim: Optional[float] = None

    def text(self):
        return (">=" if self.kind == "at_least" else "not<") + f"{self.bound:g}"

    def verdict(self, interval):
        judge = {"at_least": statistics.verdict_at_least, "not_below": statistics.verdict_not_below}[self.kind]
        return judge(interval, self.bound)


@dataclass(frozen=True)
class Pair:
    """The ratio is better for fsbl above 1, whatever the unit: fsbl / peer where more is better, else peer / fsbl."""
    name: str
    group: str
    fsbl: str
    peer: str
    unit: str
    better: str  # "higher" or "lower"
    bar: Optional[Bar]


@dataclass(frozen=True)
class Measured:
    """{member: [one value a block]} of one group, and the conditions that its lines carry."""
    values: dict
    mtu: Optional[int]
    wait: Optional[str]


FULL_BLOCKS = 6  # fewer carry no verdict

PAIRS = (
    Pair("plaintext-stream/iperf3", "stream", "plaintext", "iperf3", "Gbit/s", "higher", Bar("not_below", 0.97, 1.05)),
    Pair("rr64-busy/sockperf", "rr64-busy", "fsbl", "sockperf", "us", "lower", Bar("not_below", 1.0)),
    Pair("rr64-block/sockperf", "rr64-block", "fsbl", "sockperf", "us", "lower", Bar("not_below", 1.0)),
    Pair("mtls-stream/plaintext-stream", "stream-9000", "mtls", "plaintext", "Gbit/s", "higher", Bar("at_least", 0.65)),
    Pair("mtls-dpdk-stream/plaintext-stream", "stream-9000", "mtls-dpdk", "plaintext", "Gbit/s", "higher",
         Bar("at_least", 0.88)),
    Pair("mtls-dpdk-stream/mtls-stream", "stream-9000", "mtls-dpdk", "mtls", "Gbit/s", "higher", None),
    Pair("handshake-mutual/s_time", "handshake", "fsbl", "s_time", "1/s", "higher", Bar("at_least", 1.0, 2.0)),
    Pair("engine-aes256gcm-16k/ipsec_mb", "engine", "cryptodev", "ipsec_mb", "GB/s", "higher", Bar("at_least", 0.9)),
)

# Made from the same blocks; not one tool beside another.
COST = "protection-cost/mtls-dpdk"
MANY = "handshake-mutual/s_time-at-once"
COST_BAR = Bar("at_least", 2.0)
HELD_BACK = ("plaintext was the slower one: something else than its bytes holds it back, and this says little of what "
             "protection costs")
DERIVED = {COST: ("stream-9000", ("plaintext", "mtls", "mtls-dpdk")), MANY: ("handshake", ("fsbl", "s_time-at-once"))}

NAMES = tuple(pair.name for pair in PAIRS) + tuple(DERIVED)


def pair_of(name):
    return next((pair for pair in PAIRS if pair.name == name), None)


def needs(name):
    """(group, members) that must be measured for a pair or a derived figure."""
    pair = pair_of(name)
    return (pair.group, (pair.fsbl, pair.peer)) if pair else DERIVED[name]


def held_against(bar, interval, n):
    """The fields that say what became of the bar."""
    if bar is None:
        return {"bar": None, "met": None, "aim": None, "aim_met": None}
    enough = n >= FULL_BLOCKS
    reached = statistics.verdict_at_least(interval, bar.aim) if bar.aim is not None else None
    return {"bar": bar.text(), "met": bar.verdict(interval) if enough else "undecided", "aim": bar.aim,
            "aim_met": reached if enough or reached is None else "undecided"}


def interval_json(lo, hi, method):
    return {"lo": lo, "hi": hi, "level": statistics.LEVEL, "method": method}


def ratio_result(name, measured, fsbl, peer, unit, better, bar):
    ours, theirs = measured.values[fsbl], measured.values[peer]
    over, under = (ours, theirs) if better == "higher" else (theirs, ours)
    ratio, lo, hi = statistics.paired_ratio(over, under)
    return {"name": name, "fsbl": statistics.geometric_mean(ours), "peer": statistics.geometric_mean(theirs),
            "unit": unit, "better": better, "ratio": ratio,
            "interval": interval_json(lo, hi, statistics.RATIO_METHOD), "n": len(ours),
            **held_against(bar, (lo, hi), len(ours)), "mtu": measured.mtu, "wait": measured.wait,
            "blocks": {"fsbl": list(ours), "peer": list(theirs)}}


def evaluate_pair(pair, measured):
    result = ratio_result(pair.name, measured, pair.fsbl, pair.peer, pair.unit, pair.better, pair.bar)
    if pair.peer == "plaintext" and result["interval"]["lo"] is not None and result["interval"]["lo"] > 1:
        result["note"] = HELD_BACK
    return result


def evaluate_cost(measured):
    """(1/T_mtls - 1/T_plaintext) / (1/T_mtls-dpdk - 1/T_plaintext): how many times less time the protection of a byte
    takes. `peer` is what it costs with mtls, `fsbl` with mtls-dpdk, in ns a byte (8 / Gbit/s)."""
    plain, mtls, dpdk = (measured.values[name] for name in ("plaintext", "mtls", "mtls-dpdk"))
    with_mtls = [8 / t - 8 / p for t, p in zip(mtls, plain)]
    with_dpdk = [8 / t - 8 / p for t, p in zip(dpdk, plain)]
    ratio, lo, hi = statistics.fieller_ratio(with_mtls, with_dpdk)
    result = {"name": COST, "fsbl": statistics.mean(with_dpdk), "peer": statistics.mean(with_mtls), "unit": "ns/B",
              "better": "lower", "ratio": ratio, "interval": interval_json(lo, hi, statistics.FIELLER_METHOD),
              "n": len(plain), **held_against(COST_BAR, (lo, hi), len(plain)), "mtu": measured.mtu,
              "wait": measured.wait, "blocks": {"fsbl": with_dpdk, "peer": with_mtls}}
    if lo is None:
        # The ratio has no bounds while the cost may be nothing; whether it is half of the other still has an answer.
        difference = [a - COST_BAR.bound * b for a, b in zip(with_mtls, with_dpdk)]
        _, low, high = statistics.mean_interval(difference)
        if len(plain) >= FULL_BLOCKS:
            result["met"] = statistics.verdict_at_least((low, high), 0.0)
        result["ratio"] = None
        _, _, most = statistics.mean_interval(with_dpdk)
        if most < 0:
            result.update(met="undecided", note=HELD_BACK)
            return result
        result["note"] = "mtls-dpdk's cost can't be told from nothing here: the ratio has no bounds"
    return result


def evaluate(name, measured):
    """The result of one name of NAMES."""
    pair = pair_of(name)
    if pair:
        return evaluate_pair(pair, measured)
    if name == COST:
        return evaluate_cost(measured)
    return ratio_result(MANY, measured, "fsbl", "s_time-at-once", "1/s", "higher", None)
