"""Every transport that this host can run × shape × stream direction × IPv4 and IPv6 × MTU 1500 and 9000."""
import pytest

import result_checks as check

TRANSPORTS = ["plaintext", "wireguard-go", "mtls", "mtls-dpdk", "none+tls+openssl-evp", "wireguard-go+tls+openssl", "null"]
FLOWS = 3
SCENARIO = """
id: {id}
transports: [plaintext, wireguard-go, mtls, mtls-dpdk, {{session: tls, engine: openssl-evp}},
             {{tunnel: wireguard-go, session: tls}}, "null"]
repetitions: 1
phases: {{warm_up: 0.05s, measure: 0.15s, cool_down: 0s}}
load: {load}
matrix: {matrix}
"""
PAIRS = "testbed.ip: [4, 6], testbed.mtu: [1500, 9000]"


def write_scenarios(folder):
    """Two files, so that a run of several scenarios is tried too. Returns their paths."""
    files = {"exchange": SCENARIO.format(id="e2e/exchange", load="{payload: 16KiB, reply: 2KiB, verify: full}",
                                         matrix=f"{{{PAIRS}}}"),
             "stream": SCENARIO.format(id="e2e/stream", matrix=f"{{load.direction: [up, down], {PAIRS}}}",
                                       load=f"{{shape: stream, payload: 32KiB, streams: {FLOWS}, verify: full}}")}
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return [folder / f"{name}.yaml" for name in files]


@pytest.fixture(scope="module")
def done(fsbl_once, doctor):
    return fsbl_once("run", *write_scenarios(fsbl_once.cwd), "--quiet", limit=240)


@pytest.fixture(scope="module")
def result(done):
    return done.result


def rounds_of(result, transport):
    """(cell, round) of one transport; skips when this host can't run it."""
    status = next(t for t in result["transports"] if t["name"] == transport)
    if status["status"] == "unavailable":
        assert status["reason"]
        pytest.skip(f"{transport}: {status['reason']}")
    cells = {cell["id"]: cell for cell in result["cells"] if cell["config"]["transport"]["name"] == transport}
    return [(cells[r["cell"]], r) for r in result["rounds"] if r["cell"] in cells]


def test_run_is_complete(done, result):
    assert done.code == 0, str(done)
    check.check_result(done.folder)
    assert result["run"]["complete"] is True
    assert {t["name"] for t in result["transports"]} == set(TRANSPORTS)
    assert {s["id"] for s in result["scenarios"]} == {"e2e/exchange", "e2e/stream"}
    check.check_files(done.folder)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_combination_is_measured_and_valid(result, transport):
    rounds = rounds_of(result, transport)
    seen = {(c["config"]["load"]["shape"], c["config"]["load"]["direction"], c["config"]["testbed"]["ip"],
             c["config"]["testbed"]["mtu"]) for c, _ in rounds}
    ways = [("request-response", "up"), ("stream", "up"), ("stream", "down")]
    assert seen == {(*way, ip, mtu) for way in ways for ip in ("4", "6") for mtu in (1500, 9000)}
    for cell, r in rounds:
        assert r["validity"]["status"] == "valid", (r["cell"], check.flags_of(r))
        assert cell["config"]["load"]["verify"] == "full"
        if cell["config"]["load"]["shape"] == "stream":
            assert check.series(r, "throughput")[0]["value"] > 0
        else:
            assert check.series(r, "latency")[0]["distribution"]["n"] > 0


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_path_is_proved(result, transport):
    for cell, r in rounds_of(result, transport):
        layers = {(layer["layer"], layer["side"]) for layer in r["path"]["layers"]}
        if transport == "null":
            assert r["path"]["verdict"] == "unproven", "nothing witnesses what stays in one process"
            continue
        assert r["path"]["verdict"] == "proved", (r["cell"], r["path"])
        expected = {"link"} | ({"tunnel"} if "wireguard" in transport else set())
        expected |= {"session", "engine"} if "tls" in transport else set()
        assert {(layer, side) for layer in expected for side in ("client", "server")} <= layers
        for layer in r["path"]["layers"]:
            assert layer["verdict"] == "proved" and layer["claimed"] and layer["witnessed"] and layer["evidence"]


@pytest.mark.parametrize("transport", [t for t in TRANSPORTS if t != "null"])
def test_canary_is_seen_in_clear_on_plaintext_only(result, transport):
    for _, r in rounds_of(result, transport):
        links = [layer for layer in r["path"]["layers"] if layer["layer"] == "link"]
        assert {layer["side"] for layer in links} == {"client", "server"}
        for layer in links:
            evidence = {e["counter"]: e["after"] - e["before"] for e in layer["evidence"]}
            assert evidence["frames"] > 0 and evidence["dropped"] == 0
            matches = evidence["frames with the canary"]
            assert matches >= 1 if transport == "plaintext" else matches == 0, (r["cell"], evidence)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_bytes_are_conserved_and_reconciled(result, transport):
    for cell, r in rounds_of(result, transport):
        if transport == "null":
            continue
        client, server = r["details"]["client"], r["details"]["server"]
        assert client["reading"]["sent_bytes"] == server["reading"]["received_bytes"] > 0
        assert server["reading"]["sent_bytes"] == client["reading"]["received_bytes"] > 0
        for side in (client, server):
            counters, reading = side["interface"]["difference"], side["reading"]
            assert counters["tx_bytes"] >= reading["wire_out"] > 0
            assert counters["rx_bytes"] >= reading["wire_in"] > 0
        way = cell["config"]["load"]
        if way["shape"] == "stream":
            sender, receiver = (client, server) if way["direction"] == "up" else (server, client)
            assert sender["reading"]["sent_bytes"] > 100 * receiver["reading"]["sent_bytes"], "the wrong direction"
        mss = client["reading"]["tcp"][0]["mss_bytes"]
        mtu, overhead = cell["config"]["testbed"]["mtu"], (40 if way_is_v4(cell) else 60) + 12
        tunnel = 80 if "wireguard" in transport else 0
        assert mtu - overhead - tunnel - 16 <= mss <= mtu - overhead, (r["cell"], mss)


def way_is_v4(cell):
    return cell["config"]["testbed"]["ip"] == "4"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_handshakes_are_logged_on_both_sides(done, result, transport):
    handshakes = check.read_log(done.folder, "logs/handshakes.jsonl")
    issued = check.read_log(done.folder, "logs/issuance.jsonl")
    for cell, r in rounds_of(result, transport):
        mine, certificates = check.of_cell(handshakes, r["cell"]), check.of_cell(issued, r["cell"])
        if "tls" not in transport:
            assert not mine and not certificates
            continue
        flows = cell["config"]["load"]["streams"]
        assert sorted(h["side"] for h in mine) == ["client"] * flows + ["server"] * flows
        serials = {c["side"]: c["serial"] for c in certificates}
        ids = {c["side"]: c["spiffe_id"] for c in certificates}
        assert set(serials) == {"client", "server"} and len(certificates) == 2
        for h in mine:
            peer = {"client": "server", "server": "client"}[h["side"]]
            assert h["peer_id"] == ids[peer] and h["peer_id"].startswith("spiffe://")
            assert h["serial"] == serials[peer]
            assert (h["version"], h["cipher"], h["group"]) == ("TLSv1.3", "TLS_AES_256_GCM_SHA384", "X25519")
            assert h["signature"] == "ecdsa_secp256r1_sha256" and h["resumed"] is False and h["result"] == "accepted"
    all_serials = [c["serial"] for c in issued]
    assert len(set(all_serials)) == len(all_serials), "a serial twice"


def test_nothing_is_refused(done, result):
    assert check.read_log(done.folder, "logs/refusals.jsonl") == []
    assert all(r["attempts"]["refused_by_reason"] == {} for r in result["rounds"])


def test_what_is_missing_has_a_reason(result):
    for r in result["rounds"]:
        have = {s["metric"] for s in r["series"]}
        for missing in r["missing"]:
            assert missing["reason"] and missing["name"] not in have
        sides = {"client"} if "|null" in r["cell"] else {"client", "server"}
        for event in ("cycles", "instructions", "cache-misses", "branch-misses"):
            present = {s["side"] for s in check.series(r, f"perf.{event}")}
            absent = {m["side"] for m in r["missing"] if m["name"] == f"perf.{event}"}
            assert present | absent == sides and not present & absent, (r["cell"], event)
