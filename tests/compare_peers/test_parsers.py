"""What peers print, recorded, and what is wrong with it when it is."""
import json
import pathlib

import pytest

from compare_peers import peers
from compare_peers.errors import ToolError

SAMPLES = pathlib.Path(__file__).resolve().parent / "samples"


def sample(name):
    return (SAMPLES / name).read_text()


def test_iperf3_counts_the_server_s_intervals_inside_the_window():
    report = json.loads(sample("iperf3_server.json"))
    inside = [interval["sum"] for interval in report["intervals"][1:5]]  # 0.5 s .. 2.5 s
    expected = sum(s["bytes"] for s in inside) * 8 / sum(s["seconds"] for s in inside) / 1e9
    assert peers.parse_iperf3(sample("iperf3_server.json"), 0.5, 2.0) == pytest.approx(expected)
    whole = report["end"]["sum_received"]["bits_per_second"] / 1e9
    assert peers.parse_iperf3(sample("iperf3_server.json"), 0.5, 2.0) != pytest.approx(whole, rel=1e-6)


def iperf3_changed(change):
    report = json.loads(sample("iperf3_server.json"))
    change(report)
    return json.dumps(report)


@pytest.mark.parametrize("text, words", [
    ("", "no JSON"), ("{", "no JSON"), ('{"start": {}}', "lacks 'intervals'"),
    (iperf3_changed(lambda r: r["intervals"].__delitem__(slice(2, None))), "0.50 s of the window's 2.00 s"),
    (iperf3_changed(lambda r: [i["sum"].update(bytes=0) for i in r["intervals"]]), "0 bytes"),
    (iperf3_changed(lambda r: [i["sum"].pop("seconds") for i in r["intervals"]]), "lacks 'seconds'"),
])
def test_iperf3_broken(text, words):
    with pytest.raises(ToolError, match=words):
        peers.parse_iperf3(text, 0.5, 2.0)


def test_iperf3_refused_is_told_in_its_own_words():
    with pytest.raises(ToolError, match="unable to connect to server: Connection refused"):
        peers.parse_iperf3(sample("iperf3_refused.json"), 0.5, 2.0)


def test_sockperf_median_of_full_round_trips():
    text = sample("sockperf_full_rtt.txt")
    line = next(line for line in text.splitlines() if "percentile 50.000" in line)
    median, count = peers.parse_sockperf(text)
    assert median == float(line.split("=")[1]) and count > 1000


@pytest.mark.parametrize("text, words", [
    (sample("sockperf_halved.txt"), "halves of round trips"),
    (sample("sockperf_no_server.txt"), "Connection refused"),
    ("", "no summary"),
    (sample("sockperf_full_rtt.txt").replace("dropped messages = 0", "dropped messages = 3"), "dropped messages = 3"),
    (sample("sockperf_full_rtt.txt").replace("percentile 50.000", "percentile 51.000"), "no median"),
])
def test_sockperf_broken(text, words):
    with pytest.raises(ToolError, match=words):
        peers.parse_sockperf(text)


def test_s_time_count():
    text = sample("s_time.txt")
    assert peers.parse_s_time(text) == text.count("*") == 555


@pytest.mark.parametrize("text, words", [
    ("", "no count"), ("Collecting connection statistics for 1 seconds\n", "no count: Collecting"),
    ("***r**\n\n6 connections in 2 real seconds, 0 bytes read per connection\n", "resumed"),
    ("*\n\n1 connections in 2 real seconds, 0 bytes read per connection\n", "1 connections only"),
])
def test_s_time_broken(text, words):
    with pytest.raises(ToolError, match=words):
        peers.parse_s_time(text)


def test_s_server_complaint():
    refused = ("ERROR\n4067:error:0A0000C7:SSL routines:tls_process_client_certificate:peer did not return a "
               "certificate:../ssl/statem/statem_srvr.c:3517:\n")
    assert peers.s_server_complaint(refused) == "peer did not return a certificate"
    gone = "ERROR\n4067:error:0A000126:SSL routines:ssl3_read_n:unexpected eof while reading:../ssl/record/x.c:320:\n"
    assert peers.s_server_complaint(gone + gone) is None
    assert peers.s_server_complaint(gone + refused) == "peer did not return a certificate"
    assert peers.s_server_complaint("") is None


def test_speed():
    assert peers.parse_speed(sample("speed.txt")) == {"sign_per_s": 49933.333333, "verify_per_s": 16464.0,
                                                     "x25519_per_s": 31739.130435}
    with pytest.raises(ToolError, match="no P-256 or X25519"):
        peers.parse_speed("+F4:3:256:49933.3:16464.0\n")


NAME = "seal/ipsec_mb/aes-256-gcm/16384/burst:32"


def benchmark_with(**changed):
    report = json.loads(sample("benchmark.json"))
    report["benchmarks"][0].update(changed)
    return json.dumps(report)


def test_benchmark():
    assert peers.parse_benchmark("EAL: a line before\n" + sample("benchmark.json"), NAME) == 2.15e10


@pytest.mark.parametrize("text, words", [
    ("", "malformed"), ("{}", "malformed"), ('{"benchmarks": []}', "0 results"),
    (benchmark_with(error_occurred=True, error_message="no device"), "no device"),
    (benchmark_with(bytes_per_second=0), "no bytes_per_second"),
    (benchmark_with(run_type="aggregate"), "0 results"),
])
def test_benchmark_broken(text, words):
    with pytest.raises(ToolError, match=words):
        peers.parse_benchmark(text, NAME)


GOOD = {"handshakes": 10, "seconds": 2.0, "per_s": 5.0, "cpu_s": 0.5, "failed": 0}


def test_fsbl_handshakes():
    assert peers.parse_fsbl_handshakes(json.dumps(GOOD))["per_s"] == 5.0


@pytest.mark.parametrize("text, words", [
    ("", "malformed"), ("[]", "malformed"),
    (json.dumps({**GOOD, "failed": 2, "first_failure": "refused: expired"}), "expired"),
    (json.dumps({**GOOD, "handshakes": 0}), "no handshake"), (json.dumps({"failed": 0}), "malformed"),
])
def test_fsbl_handshakes_broken(text, words):
    with pytest.raises(ToolError, match=words):
        peers.parse_fsbl_handshakes(text)
