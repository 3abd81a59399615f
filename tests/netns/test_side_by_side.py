"""Runs in the same folder at the same time don't touch each other."""
import os
import time

import result_checks as check
from conftest import phases
from fsbl_process import link


def test_two_runs_in_one_folder(fsbl, doctor):
    usable = ",".join(t for t in ("wireguard-go", "mtls") if not doctor[t])
    common = ["run", "smoke/smoke", "--set", f"transports={usable}", "--set", "repetitions=2", *phases(measure="0.3s")]
    cpus = sorted(os.sched_getaffinity(0))
    # A CPU each, where there are two: a run that is kept from its CPU for a whole window is rightly invalid.
    runs = [fsbl.start(*common, "--set", f"placement.client={cpu}", "--set", f"placement.server={cpu}",
                       "--out", f"results/{name}", out=f"results/{name}")
            for name, cpu in (("one", cpus[0]), ("two", cpus[-1]))]
    together = 0
    while any(run.popen.poll() is None for run in runs):
        first, second = ({link(f"/proc/{p.pid}/ns/net") for p in run.processes() if p.kind == "fsbl-agent"} - {""}
                         for run in runs)
        assert not first & second, "a namespace is shared"
        together += len(first) == len(second) == 2
        time.sleep(0.005)
    assert together, "they did not run at the same time"
    for run in runs:
        finished = run.wait()
        assert finished.code == 0, str(finished)
        result = check.check_result(run.folder)
        assert result["run"]["complete"] and result["run"]["id"] == run.folder.name
        check.check_files(run.folder)
    folder = fsbl.cwd / "results"
    assert os.readlink(folder / "latest") in ("one", "two")
    assert {p.name for p in folder.iterdir()} == {"one", "two", "latest"}


def test_default_folder_and_latest(fsbl, doctor):
    for _ in range(2):
        run = fsbl.start("run", "smoke/null", "--quiet", "--out", "")
        assert run.wait().code == 0, run.text()
    folder = fsbl.cwd / "results"
    names = sorted(p.name for p in folder.iterdir() if p.name != "latest")
    assert len(names) == 2 and all("-smoke-null-" in name for name in names)
    assert os.readlink(folder / "latest") in names
    check.check_result(folder / "latest")
