"""compare-peers itself, with tiny windows: a real run of two pairs, and what is left when it is stopped."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import jsonschema
import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("FSBL_BIN") or TOP / "build" / "release" / "bin").resolve()
SCHEMA = json.loads((TOP / "scripts/compare_peers/schema.json").read_text())


@pytest.fixture
def command():
    """command(tool...): the command line of a trial; skips when a tool, or fsbl's programs, are not there."""
    def make(*tools):
        for name in ("fsbl", "fsbl-worker"):
            if not os.access(BIN / name, os.X_OK):
                pytest.skip(f"{name} is not in {BIN}")
        for tool in ("ip", *tools):
            if not shutil.which(tool):
                pytest.skip(f"{tool} is not installed")
        return ["/usr/bin/python3", "-m", "compare_peers", "--bin", str(BIN), "--trial"]

    return make


def environment():
    return {**os.environ, "PYTHONPATH": str(TOP / "scripts"), "PYTHONDONTWRITEBYTECODE": "1"}


def run(command, *words):
    done = subprocess.run([*command, *words], env=environment(), capture_output=True, text=True, timeout=120)
    if done.returncode == 4 and "namespace" in done.stderr and "--congestion" not in words:
        pytest.skip(done.stderr.strip())
    return done


def test_two_pairs(command):
    names = ["rr64-block/sockperf", "plaintext-stream/iperf3"]
    done = run(command("sockperf", "iperf3"), "--json", *(word for name in names for word in ("--only", name)))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    assert {p["name"]: p["n"] for p in found["pairs"]} == dict.fromkeys(names, 2) and not found["skipped"]
    assert all(p["met"] == "undecided" for p in found["pairs"]), "a trial decides nothing"
    assert "block 2 of 2" in done.stderr and "planned: " in done.stderr


def test_congestion_control_of_both_sides(command):
    done = run(command("iperf3"), "--json", "--congestion", "reno", "--only", "plaintext-stream/iperf3")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["environment"]["congestion_control"] == "reno"
    for name, code, said in (("no_such_one", 4, "tcp_allowed_congestion_control"), ("../x", 2, "no name")):
        done = run(command("iperf3"), "--congestion", name, "--only", "plaintext-stream/iperf3")
        assert done.returncode == code and said in done.stderr, done.stderr


def test_handshakes(command):
    for tool in ("fsbl-bench-handshakes",):
        if not os.access(BIN / tool, os.X_OK):
            pytest.skip(f"{tool} is not in {BIN}")
    done = run(command("openssl"), "--only", "handshake-mutual/s_time")
    assert done.returncode == 0, done.stderr
    assert "handshake-mutual/s_time " in done.stdout and "verifications" in done.stdout


def test_nothing_can_run(command, tmp_path):
    words = [str(tmp_path) if word == str(BIN) else word for word in command()]
    done = run(words, "--only", "rr64-block/sockperf")
    assert done.returncode == 4 and "missing: fsbl-worker is not in" in done.stdout


def children_of(pid):
    """{pid: command line} of what lives below a process."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else None
            if fields and int(fields[1]) == pid and fields[0] not in "ZX":
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found


def alive(pid):
    try:
        return (pathlib.Path(f"/proc/{pid}/stat")).read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def left_of(pids):
    """Those that are still there after ten seconds; they are killed."""
    limit = time.monotonic() + 10
    while time.monotonic() < limit and any(alive(pid) for pid in pids):
        time.sleep(0.01)
    left = [pid for pid in pids if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left


HOLDS_A_CHILD = """
import time
from compare_peers import processes
with processes.Child(["sleep", "1000"]) as child:
    print(child.pid, flush=True)
    time.sleep(1000)
"""


def test_the_kernel_kills_a_child_that_would_go_on_for_ever():
    with subprocess.Popen(["/usr/bin/python3", "-c", HOLDS_A_CHILD], env=environment(), stdout=subprocess.PIPE,
                          text=True) as holder:
        pid = int(holder.stdout.readline())
        assert alive(pid)
        holder.kill()
    assert not left_of([pid])


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_nothing_is_left_behind(command, number, code):
    words = command("sockperf")
    with subprocess.Popen([*words, "--only", "rr64-block/sockperf", "--blocks", "1000"], env=environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        try:
            children = {}
            limit = time.monotonic() + 60
            while not any("sockperf server" in line for line in children.values()):
                if script.poll() is not None:
                    said = script.stderr.read().strip()
                    pytest.skip(said) if script.returncode == 4 else pytest.fail(said)
                assert time.monotonic() < limit, "no child was ever seen"
                children = children_of(script.pid)
            script.send_signal(number)
            script.wait(60)
        finally:
            script.kill()
        assert script.returncode == code
    assert not left_of(children)
