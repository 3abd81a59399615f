"""Wrong identities: no handshake is counted, and both sides say what they saw. The certificates are made wrong by
the run's own authority (tls.client_svid, tls.server_svid)."""
import pytest

import result_checks as check
from conftest import phases

# Kind of certificate → the refusing side's reason (harness/identity/validator.cpp, COMPLIANCE.md).
WRONG = {
    "expired": "expired",
    "not-yet-valid": "not yet valid",
    "wrong-trust-domain": "wrong trust domain",
    "wrong-id": "wrong peer id",
    "no-uri-san": "no URI SAN",
    "two-uri-sans": "two URI SANs",
    "ca-as-leaf": "CA certificate used as leaf",
    "cert-sign": "keyCertSign on leaf",
    "no-digital-signature": "digitalSignature missing",
    "server-auth-only": "extended key usage lacks",
    "none": "",
}
FLOWS = 2
PEER = {"client": "server", "server": "client"}


@pytest.fixture(scope="module", params=["client", "server"])
def refused(request, fsbl_once, doctor):
    """(side with the wrong certificate, finished run, result)"""
    if doctor["mtls"]:
        pytest.skip(f"mtls: {doctor['mtls']}")
    side = request.param
    done = fsbl_once("run", "smoke/smoke", "--set", "transports=mtls", "--set", f"load.streams={FLOWS}",
                     "--set", f"tls.{side}_svid={','.join(WRONG)}", *phases())
    return side, done, check.check_result(done.folder)


def round_of(result, side, kind):
    cell = next(c for c in result["cells"] if c["config"]["tls"][f"{side}_svid"] == kind)
    return next(r for r in result["rounds"] if r["cell"] == cell["id"])


def test_exit_code_and_no_handshake_counted(refused):
    _, done, result = refused
    assert done.code == 5, str(done)
    assert len(result["rounds"]) == len(WRONG)
    assert check.read_log(done.folder, "logs/handshakes.jsonl") == []
    assert all(row["value"] is None for row in result["summary"])


@pytest.mark.parametrize("kind", WRONG)
def test_refused_and_logged_on_both_sides(refused, kind):
    side, done, result = refused
    r = round_of(result, side, kind)
    assert r["validity"]["status"] == "failed"
    assert r["attempts"]["planned"] == FLOWS and r["attempts"]["accepted"] == 0
    log = check.of_cell(check.read_log(done.folder, "logs/refusals.jsonl"), r["cell"])
    us, peer = [e for e in log if e["by"] == "us"], [e for e in log if e["by"] == "peer"]
    refusing = PEER[side] if kind != "none" or side == "client" else side
    assert [e["side"] for e in us] == [refusing] * FLOWS, log
    assert [e["side"] for e in peer] == [PEER[refusing]] * FLOWS, log
    reasons = {e["reason"] for e in us}
    assert len(reasons) == 1 and reasons != {""}
    reason = reasons.pop()
    assert WRONG[kind] in reason, reason
    assert r["attempts"]["refused_by_reason"] == {reason: FLOWS}
    assert reason in check.flags_of(r), "the round says why"
    assert all(e["reason"] and e["reason"] != "alert from the peer: unknown" for e in peer), peer


def test_issuance_says_what_was_made_wrong(refused):
    side, done, result = refused
    for entry in check.read_log(done.folder, "logs/issuance.jsonl"):
        cell = next(c for c in result["cells"] if c["id"] == entry["cell"])
        assert entry["made"] == cell["config"]["tls"][f"{entry['side']}_svid"]


def test_good_identities_after_refused_ones_are_accepted(fsbl, require):
    require("mtls")
    done = fsbl("run", "smoke/smoke", "--set", "transports=mtls", "--set", "tls.client_svid=wrong-id,good,expired",
                *phases())
    assert done.code == 5
    result = check.check_result(done.folder)
    for kind, status in (("good", "valid"), ("wrong-id", "failed"), ("expired", "failed")):
        assert round_of(result, "client", kind)["validity"]["status"] == status
    handshakes = check.read_log(done.folder, "logs/handshakes.jsonl")
    good = round_of(result, "client", "good")["cell"]
    assert sorted((h["cell"], h["side"]) for h in handshakes) == [(good, "client"), (good, "server")]


@pytest.mark.parametrize("key,signature", [("p256", "ecdsa_secp256r1_sha256"), ("ed25519", "ed25519")])
@pytest.mark.parametrize("cipher,group", [("TLS_AES_128_GCM_SHA256", "P-256"), ("TLS_CHACHA20_POLY1305_SHA256", "P-384")])
def test_cipher_group_and_key_are_those_asked_for(fsbl, require, key, signature, cipher, group):
    require("mtls")
    done = fsbl("run", "smoke/smoke", "--set", "transports=mtls", "--set", f"tls.cipher={cipher}", "--set",
                f"tls.group={group}", "--set", f"tls.key={key}", *phases())
    assert done.code == 0, str(done)
    result = check.check_result(done.folder)
    for h in check.read_log(done.folder, "logs/handshakes.jsonl"):
        assert (h["cipher"], h["group"], h["signature"]) == (cipher, group, signature)
    assert {e["key_type"] for e in check.read_log(done.folder, "logs/issuance.jsonl")} == {key}
    assert result["rounds"][0]["path"]["verdict"] == "proved"


@pytest.mark.parametrize("resumption", ["on", "off"])
def test_resumption_only_when_asked_for(fsbl, require, resumption):
    require("mtls")
    done = fsbl("run", "smoke/smoke", "--set", "transports=mtls", "--set", "load.streams=4", "--set",
                f"tls.resumption={resumption}", *phases())
    assert done.code == 0, str(done)
    check.check_result(done.folder)
    resumed = [h["resumed"] for h in check.read_log(done.folder, "logs/handshakes.jsonl")]
    assert len(resumed) == 8 and sum(resumed) == (6 if resumption == "on" else 0)
