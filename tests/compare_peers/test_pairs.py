"""From measured values to results, verdicts, table and JSON; no tool is run."""
import argparse
import io
import json
import pathlib

import jsonschema
import pytest

from compare_peers import __main__ as command, blocks, groups, output, pairs
from compare_peers.errors import Missing, ToolError

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = json.loads((HERE.parent.parent / "scripts/compare_peers/schema.json").read_text())
STEADY = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98]


def steady(value):
    return [value * factor for factor in STEADY]


def measured(**values):
    return pairs.Measured({name.replace("_dpdk", "-dpdk"): found for name, found in values.items()}, 9000, "block")


def pair(name):
    return pairs.pair_of(name)


def test_rates_and_times_are_both_better_above_one():
    faster = pairs.evaluate_pair(pair("plaintext-stream/iperf3"), measured(plaintext=steady(20), iperf3=steady(10)))
    quicker = pairs.evaluate_pair(pair("rr64-busy/sockperf"), measured(fsbl=steady(10), sockperf=steady(20)))
    assert faster["ratio"] == pytest.approx(2) and quicker["ratio"] == pytest.approx(2)
    assert faster["better"] == "higher" and quicker["better"] == "lower"


@pytest.mark.parametrize("ratio, met, aim", [(1.2, "met", "met"), (1.0, "met", "missed"), (0.9, "missed", "missed")])
def test_bar_and_aim(ratio, met, aim):
    values = measured(plaintext=steady(10 * ratio), iperf3=steady(10))
    found = pairs.evaluate_pair(pair("plaintext-stream/iperf3"), values)
    assert (found["bar"], found["met"], found["aim_met"]) == ("not<0.97", met, aim)


def test_too_few_blocks_decide_nothing():
    few = {"mtls": [9.0] * 5, "plaintext": [10.0] * 5}
    found = pairs.evaluate_pair(pair("mtls-stream/plaintext-stream"), pairs.Measured(few, 9000, "block"))
    assert found["n"] == 5 and found["met"] == "undecided"


def test_protection_cost():
    found = pairs.evaluate_cost(measured(plaintext=steady(16.0), mtls=steady(8.0), mtls_dpdk=steady(12.8)))
    # 8/8 - 8/16 = 0.5 ns and 8/12.8 - 8/16 = 0.125 ns a byte
    assert found["peer"] == pytest.approx(0.5, rel=1e-3) and found["fsbl"] == pytest.approx(0.125, rel=1e-3)
    assert found["ratio"] == pytest.approx(4) and found["met"] == "met" and found["interval"]["lo"] > 3.9
    worse = pairs.evaluate_cost(measured(plaintext=steady(16.0), mtls=steady(8.0), mtls_dpdk=steady(9.0)))
    assert worse["met"] == "missed"


def test_protection_that_costs_nothing_has_no_bounds_and_yet_a_verdict():
    noise = [1.01, 0.99, 1.02, 0.98, 1.01, 0.99]
    free = pairs.evaluate_cost(measured(plaintext=[16.0] * 6, mtls=steady(8.0), mtls_dpdk=[16 * f for f in noise]))
    assert free["interval"]["lo"] is None and free["ratio"] is None
    assert free["met"] == "met" and "no bounds" in free["note"]


def test_plaintext_that_is_held_back_is_told_and_decides_no_cost():
    values = measured(plaintext=steady(10.0), mtls=steady(11.0), mtls_dpdk=steady(16.0))
    cost = pairs.evaluate_cost(values)
    assert cost["met"] == "undecided" and cost["ratio"] is None and cost["note"] == pairs.HELD_BACK
    assert pairs.evaluate_pair(pair("mtls-stream/plaintext-stream"), values)["note"] == pairs.HELD_BACK
    usual = pairs.Measured({"plaintext": steady(20.0), "mtls": steady(12.0)}, 9000, "block")
    assert "note" not in pairs.evaluate_pair(pair("mtls-stream/plaintext-stream"), usual)


def sample_result():
    """One of each kind, with numbers that nobody measured."""
    stream = pairs.Measured({"plaintext": steady(20.0), "mtls": steady(12.0)}, 9000, "block")
    found = {
        "pairs": [
            pairs.evaluate_pair(pair("plaintext-stream/iperf3"),
                                pairs.Measured({"plaintext": steady(15.0), "iperf3": steady(14.0)}, 1500, "block")),
            pairs.evaluate_pair(pair("rr64-busy/sockperf"),
                                pairs.Measured({"fsbl": steady(9.5), "sockperf": steady(10.5)}, 1500, "busy")),
            pairs.evaluate_pair(pair("mtls-stream/plaintext-stream"), stream),
            pairs.evaluate_pair(pair("handshake-mutual/s_time"),
                                pairs.Measured({"fsbl": steady(1200.0), "s_time": steady(620.0)}, 1500, "block")),
        ],
        "derived": [pairs.evaluate_cost(pairs.Measured(
            {"plaintext": [16.0] * 6, "mtls": steady(8.0), "mtls-dpdk": steady(16.0)}, 9000, "block"))],
        "skipped": [{"name": "engine-aes256gcm-16k/ipsec_mb", "reason": "missing: fsbl-bench-engines is not here"},
                    {"name": "mtls-dpdk-stream/mtls-stream", "reason": "missing: fsbl-bench-engines is not here"}],
        "environment": {
            "kernel": "6.1.0", "cpu": "Some CPU", "cpus": 2, "cores": {"client": 0, "server": 1}, "load_average": 0.75,
            "testbed": "two network namespaces, one veth pair", "user": "root", "blocks": 6, "seed": 1,
            "warm_up_s": 0.5, "measure_s": 2.0, "trial": False, "write_bytes": 65536, "ping_pong_bytes": 64,
            "socket_buffers": "the kernel's autotuning", "versions": {"iperf3": "iperf 3.12", "openssl": "OpenSSL 3.0"},
            "congestion_control": "cubic", "tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 16384 4194304",
            "engine_cases": {"cryptodev": "seal/cryptodev:x", "ipsec_mb": "seal/ipsec_mb"},
            "offloads": {"tso": True, "gro": False},
            "handshake": {"client_cpu_us": {"fsbl": 795.0, "s_time": 906.0}, "at_a_time": 8, "key": "P-256",
                          "group": "X25519", "cipher": "TLS_AES_256_GCM_SHA384", "server": "openssl s_server",
                          "subject_alternative_name": "spiffe://fsbl.test/worker/<role>",
                          "speed": {"sign_per_s": 50000.0, "verify_per_s": 16000.0, "x25519_per_s": 32000.0},
                          "primitives_us": 207.5},
        },
    }
    return found


def test_text_is_the_golden_file():
    text = output.text(sample_result())
    assert max(len(line) for line in text.splitlines()) <= 100
    assert text == (HERE / "samples/table.txt").read_text()


def test_longest_row_fits():
    found = pairs.evaluate_pair(pair("mtls-dpdk-stream/plaintext-stream"),
                                measured(mtls_dpdk=steady(123.456), plaintext=steady(123.456)))
    found["interval"].update(lo=0.8765, hi=0.9876)
    found["met"] = "undecided"
    cost = dict(found, name=pairs.COST, bar="not<0.97", n=1000)
    assert max(len(line) for line in output.table([found, cost])) <= 100


def test_json_has_its_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(output.as_json(sample_result())), SCHEMA)
    broken = sample_result()
    del broken["pairs"][0]["interval"]["method"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


# --- the blocks ---------------------------------------------------------------------------------------------------

def options(**changed):
    return argparse.Namespace(**{"blocks": 6, "seed": 1, **changed})


def quietly(known, names, opts, monkeypatch):
    monkeypatch.setattr(blocks, "Clock", lambda planned: Silent(planned))
    return blocks.run_all(known, names, opts)


class Silent(blocks.__dict__["Clock"]):
    def __init__(self, planned):
        super().__init__(planned, io.StringIO())


def group(name, members, checks=None):
    made = {member: ((checks or {}).get(member, lambda: None), run) for member, run in members.items()}
    return {name: groups.Group(name, name, 1500, "block", made, 1.0)}


def test_every_block_has_each_member_once_in_an_order_from_the_seed(monkeypatch):
    def order_of(seed):
        seen = []
        known = group("stream", {m: (lambda m=m: seen.append(m) or 1.0) for m in ("plaintext", "iperf3")})
        quietly(known, ["plaintext-stream/iperf3"], options(seed=seed, blocks=20), monkeypatch)
        return seen

    seen = order_of(1)
    assert all(sorted(seen[i:i + 2]) == ["iperf3", "plaintext"] for i in range(0, 40, 2))
    assert {tuple(seen[i:i + 2]) for i in range(0, 40, 2)} == {("iperf3", "plaintext"), ("plaintext", "iperf3")}
    assert order_of(1) == seen and order_of(2) != seen


def raising(error):
    def run():
        raise error

    return run


def test_a_missing_tool_is_skipped_with_its_reason_and_the_rest_goes_on(monkeypatch):
    known = group("stream-9000", {m: lambda: 1.0 for m in ("plaintext", "mtls", "mtls-dpdk")},
                  {"mtls-dpdk": raising(Missing("no DPDK here"))})
    names = [n for n in pairs.NAMES if pairs.needs(n)[0] == "stream-9000"]
    found = quietly(known, names, options(), monkeypatch)
    assert [p["name"] for p in found["pairs"]] == ["mtls-stream/plaintext-stream"] and not found["derived"]
    assert {s["name"]: s["reason"] for s in found["skipped"]} == dict.fromkeys(
        ["mtls-dpdk-stream/plaintext-stream", "mtls-dpdk-stream/mtls-stream", pairs.COST], "missing: no DPDK here")


def test_a_tool_that_fails_in_a_later_block_takes_its_pair_along(monkeypatch):
    left = [1.0, 1.0]
    fails = raising(ToolError("gone"))
    known = group("stream", {"plaintext": lambda: 1.0, "iperf3": lambda: left.pop() if left else fails()})
    found = quietly(known, ["plaintext-stream/iperf3"], options(), monkeypatch)
    assert found["pairs"] == [] and found["skipped"] == [{"name": "plaintext-stream/iperf3", "reason": "failed: gone"}]


def test_nothing_is_measured_that_no_wanted_name_needs(monkeypatch):
    known = group("handshake", {"fsbl": lambda: 2.0, "s_time": lambda: 1.0,
                                "s_time-at-once": raising(AssertionError())})
    found = quietly(known, ["handshake-mutual/s_time"], options(), monkeypatch)
    assert found["pairs"][0]["ratio"] == pytest.approx(2)


def test_every_name_has_an_end(monkeypatch):
    known = {}
    for name, members in {"stream": ("plaintext", "iperf3"), "rr64-busy": ("fsbl", "sockperf"),
                          "rr64-block": ("fsbl", "sockperf"), "stream-9000": ("plaintext", "mtls", "mtls-dpdk"),
                          "handshake": ("fsbl", "s_time", "s_time-at-once"),
                          "engine": ("cryptodev", "ipsec_mb")}.items():
        known.update(group(name, {m: lambda: 1.0 for m in members}, {m: raising(Missing("x")) for m in members[:1]}
                           if name == "engine" else None))
    found = quietly(known, list(pairs.NAMES), options(), monkeypatch)
    assert sorted(item["name"] for part in found.values() for item in part) == sorted(pairs.NAMES)


# --- usage --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("words, said", [
    (["--only", "nope"], "rr64-busy/sockperf"), (["--blocks", "5"], "6 blocks or more"),
    (["--seconds", "0.7"], "multiple of 0.5"), (["--mtu", "100"], "between 1280 and 65535"),
    (["--cores", "0"], "CLIENT,SERVER"), (["--cores", "0,9999"], "core 9999"),
    (["--no-such-option"], "--no-such-option")])
def test_bad_usage_is_exit_2_and_says_why(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2 and said in capsys.readouterr().err
