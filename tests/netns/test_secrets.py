"""No private key in a file, in the log at its most talkative, or where other users can look (/proc)."""
import base64
import re
import socket

import pytest

import result_checks as check
from conftest import phases
from fsbl_process import read

PRIVATE = re.compile(rb"-----BEGIN|PRIVATE KEY|private_key=|preshared_key=|key_pem")


def wireguard_keys(run):
    """The private keys of the run's daemons, asked of them as root: what must be found nowhere."""
    keys = []
    for process in run.processes():
        if process.kind != "wireguard-go":
            continue
        with socket.socket(socket.AF_UNIX) as uapi:
            uapi.settimeout(2)
            uapi.connect(f"/proc/{process.pid}/root/run/wireguard/{process.command[-1]}.sock")
            uapi.sendall(b"get=1\n\n")
            reply = b""
            while not reply.endswith(b"\n\n"):
                reply += uapi.recv(4096)
        keys += re.findall(rb"^private_key=([0-9a-f]{64})$", reply, re.M)
    return keys


def test_no_private_key_is_seen(fsbl, require):
    require("mtls", "wireguard-go")
    run = fsbl.start("run", "smoke/tunnelled-mtls", "--set", "load.shape=stream", *phases(measure="0.8s"),
                     environment={"FSBL_LOG": "trace"})
    assert run.wait_for("fsbl-worker", "server"), run.text()
    keys = set()
    in_proc = b""
    while run.popen.poll() is None:
        for process in run.processes():
            in_proc += read(f"/proc/{process.pid}/cmdline", "rb") + read(f"/proc/{process.pid}/environ", "rb")
        try:
            keys |= set(wireguard_keys(run))
        except OSError:
            pass  # just ended
    done = run.wait()
    assert done.code == 0, str(done)
    if not keys:
        pytest.skip("the daemons' keys can't be asked for (not root?)")
    assert len(keys) == 2
    needles = [form for key in keys for raw in [bytes.fromhex(key.decode())]
               for form in (raw, key, key.upper(), base64.b64encode(raw).rstrip(b"="), base64.urlsafe_b64encode(raw).rstrip(b"="))]
    places = {"stdout and stderr": (done.out + done.err).encode(), "/proc": in_proc,
              **{path.name: path.read_bytes() for path in done.folder.rglob("*") if path.is_file()}}
    assert len(in_proc) > 1000 and "fsbl-agent" in in_proc.decode("utf-8", "replace")
    for where, content in places.items():
        assert not PRIVATE.search(content), f"{where}: {PRIVATE.search(content)}"
        for needle in needles:
            assert needle not in content, f"a WireGuard key is in {where}"
    check.check_files(done.folder)


def test_worker_can_not_be_looked_into(fsbl, require):
    """Not dumpable, and not root: its memory holds keys."""
    require("mtls")
    run = fsbl.start("run", "smoke/smoke", "--set", "transports=mtls", *phases(measure="1s"))
    worker = run.wait_for("fsbl-worker", "server")
    assert worker
    status = dict(line.split(":\t", 1) for line in read(f"/proc/{worker.pid}/status").splitlines())
    assert "0" not in status["Uid"].split()
    limits = read(f"/proc/{worker.pid}/limits")
    assert re.search(r"Max core file size\s+0\s+0", limits), limits
    assert run.wait().code == 0


def test_host_is_not_identified(fsbl, doctor):
    done = fsbl("run", "smoke/smoke", "--set", "transports=plaintext", *phases())
    assert done.code == 0, str(done)
    text = (done.folder / "result.json").read_text().lower()
    name = socket.gethostname().lower()
    if len(name) > 3 and name not in ("localhost", "debian", "ubuntu"):
        assert not re.search(rf"\b{re.escape(name)}\b", text), "the host's name is in the result"
    assert not re.search(r"\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b", text), "a MAC address is in the result"
