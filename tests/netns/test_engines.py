"""Record engines: what their device says of itself, what must be refused before a round is lost on it, KeyUpdates,
record cryptography on another core, several devices in one run, an ordinary user's run."""
import pytest

import result_checks as check

SCENARIO = """
id: e2e/engines
transports: [{transport}]
repetitions: 1
phases: {{warm_up: 0.05s, measure: 0.15s, cool_down: 0s}}
load: {{shape: stream, payload: 32KiB, streams: 3, verify: full}}
{more}
"""
OWN = {"openssl-evp": "{tunnel: none, session: tls, engine: openssl-evp}", "cryptodev": "mtls-dpdk"}


@pytest.fixture
def needs_cryptodev(require):
    require("mtls-dpdk")


def write(folder, transport, more=""):
    path = folder / "engines.yaml"
    path.write_text(SCENARIO.format(transport=transport, more=more))
    return path


def engine_layers(result):
    return [(r, layer) for r in result["rounds"] for layer in r["path"]["layers"] if layer["layer"] == "engine"]


def test_doctor_names_the_device(fsbl, needs_cryptodev):
    said = fsbl("doctor")
    assert "mTLS · cryptodev aesni_gcm (CPU), DPDK 2" in said.out, str(said)


def test_a_software_driver_is_called_cpu_and_counted_by_its_device(fsbl, needs_cryptodev):
    done = fsbl("run", write(fsbl.cwd, "mtls-dpdk"), "--quiet")
    assert done.code == 0, str(done)
    transport, = done.result["transports"]
    assert transport["label"] == "mTLS · cryptodev aesni_gcm (CPU)"
    assert "offloaded" not in done.out.split("Paths")[0].replace("mTLS, offloaded", "")
    layers = engine_layers(done.result)
    assert {layer["side"] for _, layer in layers} == {"client", "server"}
    for r, layer in layers:
        assert layer["verdict"] == "proved" and layer["device_class"] == "cpu", layer
        reading = r["details"][layer["side"]]["reading"]
        assert reading["engine"]["driver"] == "crypto_aesni_gcm" and reading["engine"]["version"].startswith("DPDK ")
        own, = [e for e in layer["evidence"] if e["counter"] == "dequeued_count"]
        assert own["after"] == reading["records_out"] + reading["records_in"] > 0, "each record once through the device"


@pytest.mark.parametrize("device, words", [
    ("crypto_null", "does not encrypt"),
    ("crypto_null,max_nb_queue_pairs=2", "does not encrypt"),
    ("crypto_nonsense", "crypto_nonsense"),
    ("0000:ff:1f.7", "0000:ff:1f.7"),
])
def test_a_device_that_cannot_protect_is_refused_with_exit_4(fsbl, needs_cryptodev, device, words):
    done = fsbl("run", write(fsbl.cwd, "mtls-dpdk"), "--set", f"crypto.device={device}", "--quiet")
    assert done.code == 4, str(done)
    assert words in done.err, str(done)


def test_a_driver_without_the_cipher_is_refused_by_name(fsbl, needs_cryptodev):
    done = fsbl("run", write(fsbl.cwd, "mtls-dpdk"), "--set", "crypto.device=crypto_chacha20_poly1305", "--quiet")
    assert done.code == 4 and "crypto_chacha20_poly1305" in done.err, str(done)


def test_a_device_that_only_some_cells_can_use_is_an_error_and_no_gap(fsbl, needs_cryptodev):
    more = "matrix: {tls.cipher: [TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256]}"
    done = fsbl("run", write(fsbl.cwd, "mtls-dpdk", more), "--set", "crypto.device=crypto_openssl", "--quiet")
    assert done.code == 4 and "ChaCha20-Poly1305" in done.err, str(done)


def test_the_other_transports_run_without_it(fsbl, needs_cryptodev):
    done = fsbl("run", write(fsbl.cwd, "mtls-dpdk, plaintext"), "--set", "crypto.device=crypto_null", "--quiet")
    assert done.code == 0, str(done)
    refused = next(t for t in done.result["transports"] if t["name"] == "mtls-dpdk")
    assert refused["status"] == "unavailable" and "does not encrypt" in refused["reason"]
    assert {c["config"]["transport"]["name"] for c in done.result["cells"]} == {"plaintext"}


def test_devices_and_ciphers_side_by_side(fsbl, needs_cryptodev):
    more = ("matrix:\n  crypto.device: [auto, crypto_aesni_mb]\n"
            "  tls.cipher: [TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256]")
    done = fsbl("run", write(fsbl.cwd, "mtls-dpdk", more), "--quiet")
    assert done.code == 0, str(done)
    drivers = {r["details"]["client"]["reading"]["engine"]["driver"] for r in done.result["rounds"]}
    assert drivers == {"crypto_aesni_gcm", "crypto_chacha20_poly1305", "crypto_aesni_mb"}
    for driver in ("aesni_gcm", "chacha20_poly1305", "aesni_mb"):
        assert f"cryptodev {driver} (CPU)" in done.result["transports"][0]["label"]
    assert all(layer["verdict"] == "proved" for _, layer in engine_layers(done.result))


@pytest.mark.parametrize("engine", ["openssl", *OWN])
def test_key_updates_inside_a_round_lose_nothing_and_are_counted(fsbl, require, engine):
    require("mtls-dpdk" if engine == "cryptodev" else "mtls")
    done = fsbl("run", write(fsbl.cwd, OWN.get(engine, "mtls")), "--set", "tls.rekey_records=7", "--quiet")
    assert done.code == 0, str(done)
    for r in done.result["rounds"]:
        client, server = (r["details"][side]["reading"] for side in ("client", "server"))
        assert client["key_updates_out"] == server["key_updates_in"] > 10
        assert client["sent_bytes"] == server["received_bytes"] > 0
        assert client["records_out"] > 7 * (client["key_updates_out"] - 3)


@pytest.mark.parametrize("engine", OWN)
@pytest.mark.parametrize("shape", ["stream", "request-response"])
def test_record_cryptography_on_another_core(fsbl, require, engine, shape):
    require("mtls-dpdk" if engine == "cryptodev" else "mtls")
    done = fsbl("run", write(fsbl.cwd, OWN[engine]), "--set", "placement.crypto_client=1", "--set",
                "placement.crypto_server=0", "--set", f"load.shape={shape}", "--quiet")
    assert done.code == 0, str(done)
    for r, layer in engine_layers(done.result):
        assert layer["verdict"] == "proved"
        assert r["details"][layer["side"]]["reading"]["engine"]["core"] == (1 if layer["side"] == "client" else 0)


def test_a_core_that_is_not_there_is_told(fsbl):
    done = fsbl("run", write(fsbl.cwd, OWN["openssl-evp"]), "--set", "placement.crypto_client=1000", "--quiet")
    assert done.code in (2, 5) and "placement.crypto_client" in done.err + done.out, str(done)


def test_resumption_works_where_the_engine_owns_the_records(fsbl):
    done = fsbl("run", write(fsbl.cwd, OWN["openssl-evp"]), "--set", "tls.resumption=on", "--quiet")
    assert done.code == 0, str(done)
    for r in done.result["rounds"]:
        assert check.series(r, "resumed_ratio")[0]["value"] == pytest.approx(2 / 3), "all flows but the first"
