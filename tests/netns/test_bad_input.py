"""Bad input from the command line: the exit code of DESIGN.md, a message that says what, why and (where there is
one) the fix, and nothing left behind."""
import os
import shutil
import subprocess

import pytest

import result_checks as check
from conftest import TOP, phases

QUICK = phases()
# arguments after `fsbl run` → exit code, and what the message must contain
CASES = {
    "unknown scenario": (["smoke/smok"], 2, ["smoke/smok", "not found", "nearest", "smoke/smoke"]),
    "missing file": (["./missing.yaml"], 2, ["./missing.yaml", "ENOENT"]),
    "no scenario": ([], 2, ["SCENARIO"]),
    "unknown option": (["smoke/smoke", "--frobnicate"], 2, ["--frobnicate"]),
    "unknown profile": (["smoke/smoke", "--profile", "nope"], 2, ["nope", "known: full, quick"]),
    "unknown key": (["smoke/smoke", "--set", "load.payloud=4KiB"], 2, ["load.payloud", "nearest: 'load.payload'"]),
    "no key": (["smoke/smoke", "--set", "4KiB"], 2, ["4KiB", "key=value"]),
    "unit of a size": (["smoke/smoke", "--set", "load.payload=4s"], 2, ["load.payload", "unknown unit 's'", "KiB"]),
    "duration without a unit": (["smoke/smoke", "--set", "phases.measure=5"], 2, ["phases.measure", "no unit", "ms"]),
    "negative duration": (["smoke/smoke", "--set", "phases.measure=-1s"], 2, ["phases.measure", "-1s", "negative"]),
    "no time to measure": (["smoke/smoke", "--set", "phases.measure=0s"], 2, ["phases.measure"]),
    "no streams": (["smoke/smoke", "--set", "load.streams=0"], 2, ["load.streams", "1..10000"]),
    "payload above its limit": (["smoke/smoke", "--set", "load.payload=2GiB"], 2, ["load.payload", "1GiB"]),
    "unknown transport": (["smoke/smoke", "--set", "transports=plaintex"], 2, ["plaintex", "nearest: 'plaintext'"]),
    "unknown value": (["smoke/smoke", "--set", "testbed.ip=5"], 2, ["testbed.ip", "5", "known: 4, 6"]),
    "unknown certificate": (["smoke/smoke", "--set", "tls.client_svid=bad"], 2, ["tls.client_svid", "expired"]),
    "sysctl of the host": (["smoke/smoke", "--set", "testbed.sysctls.server.kernel.pid_max=1"], 2, ["kernel.pid_max", "net."]),
    "arm without a name": (["smoke/smoke", "--arm", "testbed.mtu=9000"], 2, ["--arm", "NAME:key=value"]),
    "arm with an unknown key": (["smoke/smoke", "--arm", "a:", "--arm", "b:load.foo=1"], 2, ["load.foo", "unknown key"]),
    "unknown testbed": (["smoke/smoke", "--testbed", "moon"], 2, ["--testbed", "moon", "netns"]),
    "requires what it does not run": (["smoke/null", "--require", "mtls"], 2, ["--require mtls", "transports="]),
    "no such CPU": (["smoke/smoke", "--set", "transports=plaintext", "--set", "placement.client=99"], 2,
                    ["CPU 99", "placement.client"]),
    "no such CPU for a daemon": (["smoke/smoke", "--set", "transports=wireguard-go", "--set", "placement.client=99"], 2,
                                 ["CPU 99", "placement.client"]),
    "no such NUMA node": (["smoke/smoke", "--set", "transports=plaintext", "--set", "testbed.numa.server=63"], 2,
                          ["NUMA node 63"]),
    "no such worker": (["smoke/smoke", "--set", "worker.binary=/nowhere/worker"], 2, ["/nowhere/worker", "ENOENT"]),
}


@pytest.mark.parametrize("what", CASES)
def test_refused_with_a_clear_message(fsbl, doctor, what):
    arguments, code, words = CASES[what]
    done = fsbl("run", *arguments, "--quiet", *(QUICK if arguments and "phases.measure" not in str(arguments) else []))
    assert done.code == code, str(done)
    assert done.out == "" and done.err.count("\n") <= 5, str(done)
    for word in words:
        assert word in done.err, f"'{word}' is missing in: {done.err}"
    assert not done.folder.exists(), "a folder was made"


@pytest.mark.parametrize("text,words", [
    ("id: mine/x\ntransports: [plaintext]\nrepititions: 3\n", ["mine.yaml:3:1", "repititions", "nearest: 'repetitions'"]),
    ("id: mine/x\ntransports: [plaintext]\nload: {payload: 4 parsecs}\n", ["mine.yaml:3:", "payload", "parsecs"]),
    ("id: mine/x\ntransports: []\n", ["mine.yaml:2:", "transports"]),
    ("transports: [plaintext]\n", ["mine.yaml", "id"]),
    ("id: [\n", ["mine.yaml:"]),
    ("", ["mine.yaml"]),
])
def test_scenario_file_errors_say_where(fsbl, text, words):
    (fsbl.cwd / "mine.yaml").write_text(text)
    done = fsbl("run", "mine.yaml")
    assert done.code == 2, str(done)
    for word in words:
        assert word in done.err, f"'{word}' is missing in: {done.err}"


def test_required_transport_that_cannot_run_here_is_exit_4(fsbl, doctor):
    unusable = [t for t, reason in doctor.items() if reason]
    if not unusable:
        pytest.skip("this host can run every transport")
    done = fsbl("run", "smoke/smoke", "--set", f"transports=plaintext,{unusable[0]}", "--require", unusable[0], *QUICK)
    assert done.code == 4 and unusable[0] in done.err and doctor[unusable[0]] in done.err, str(done)
    assert not done.folder.exists()


def test_nothing_usable_is_exit_4(fsbl, doctor):
    unusable = [t for t, reason in doctor.items() if reason]
    if not unusable:
        pytest.skip("this host can run every transport")
    done = fsbl("run", "smoke/smoke", "--set", f"transports={unusable[0]}", *QUICK)
    assert done.code == 4 and doctor[unusable[0]] in done.err, str(done)


def test_some_unusable_is_exit_0_and_keeps_the_row_with_its_reason(fsbl, doctor):
    unusable = [t for t, reason in doctor.items() if reason]
    if not unusable:
        pytest.skip("this host can run every transport")
    done = fsbl("run", "smoke/smoke", "--set", f"transports=plaintext,{unusable[0]}", *QUICK)
    assert done.code == 0, str(done)
    status = {t["name"]: t for t in check.check_result(done.folder)["transports"]}
    assert status["plaintext"]["status"] == "measured"
    assert status[unusable[0]]["status"] == "unavailable" and status[unusable[0]]["reason"] == doctor[unusable[0]]
    assert doctor[unusable[0]] in " ".join(done.out.split()), "the table has its row"


def test_sysctl_that_the_namespace_lacks_fails_the_round(fsbl, doctor):
    done = fsbl("run", "smoke/smoke", "--set", "transports=plaintext", "--set",
                "testbed.sysctls.server.net.ipv4.no_such=1", *QUICK)
    assert done.code == 5 and "net.ipv4.no_such" in done.err and "server" in done.err, str(done)
    result = check.check_result(done.folder)
    assert [r["validity"]["status"] for r in result["rounds"]] == ["failed"]


def test_folder_with_a_result_is_refused(fsbl, doctor):
    first = fsbl("run", "smoke/null", "--quiet", "--out", "here", *QUICK)
    assert first.code == 0, str(first)
    before = (fsbl.cwd / "here" / "result.json").read_bytes()
    again = fsbl("run", "smoke/null", "--out", "here", *QUICK)
    assert again.code == 2 and "here" in again.err and "another folder" in again.err, str(again)
    assert (fsbl.cwd / "here" / "result.json").read_bytes() == before


@pytest.mark.parametrize("place", ["a-file/out", "/proc/out"])
def test_folder_that_cannot_be_made(fsbl, doctor, place):
    """Known before anything is measured: a run of hours must not end with nowhere to put its result."""
    (fsbl.cwd / "a-file").write_text("in the way")
    done = fsbl("run", "smoke/null", "--quiet", "--out", place, *phases(measure="20s"), limit=60)
    assert done.code in (2, 4, 5) and place in done.err and done.out == "", str(done)
    assert done.seconds < 15, "it measured first"


def private_tmpfs(size):
    """A command prefix that runs the rest with a small, empty file system on ./small."""
    script = f'mount -t tmpfs -o size={size} none small && cd small && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]


@pytest.mark.parametrize("size,kept", [("32k", False), ("160k", True)])
def test_full_disk(fsbl, programs, doctor, size, kept):
    """Rounds are written until the disk is full; what stands there then is a whole result, or none."""
    if os.geteuid() != 0:
        pytest.skip("a small file system to fill needs root")
    if not shutil.which("unshare"):
        pytest.skip("no unshare (util-linux)")
    (fsbl.cwd / "small").mkdir()
    probe = subprocess.run([*private_tmpfs(size), "true"], cwd=fsbl.cwd, capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(f"no private mount here: {probe.stderr.strip()}")
    # The mount goes with its namespace: what is on it is copied out before.
    inner = (f"'{programs}/fsbl' run smoke/smoke --quiet --set transports=plaintext,mtls --set repetitions=8 "
             f"{' '.join(phases())} --out out; code=$?; cp -r . ..; exit $code")
    done = subprocess.run([*private_tmpfs(size), "sh", "-c", inner], cwd=fsbl.cwd, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 5, done.stdout + done.stderr
    assert "write " in done.stderr and "ENOSPC" in done.stderr and "free some space" in done.stderr, done.stderr
    check.check_files(fsbl.cwd / "out")
    assert (fsbl.cwd / "out" / "result.json").exists() is kept
    if kept:
        result = check.check_result(fsbl.cwd / "out")
        assert result["run"]["complete"] is False and result["rounds"]


def test_unwritable_folder_of_an_ordinary_user(fsbl, doctor):
    """Through the same door as any fault: what, why."""
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere; test_ordinary_user.py tries it as an ordinary user")
    done = fsbl("run", "smoke/null", "--out", "/no-permission", *QUICK)
    assert done.code in (2, 4, 5) and "EACCES" in done.err, str(done)


def test_message_has_no_path_of_the_build(fsbl):
    done = fsbl("run", "nowhere/at-all")
    assert done.code == 2 and "known:" in done.err
    assert str(TOP / "harness") not in done.err
