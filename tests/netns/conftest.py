"""End-to-end tests of fsbl in network namespaces.

FSBL_BIN names the folder with the three programs; without it the release build of this checkout is taken. Each run
is bounded, and after each test nothing may be left of the runs that it started. What this host can't run is skipped
with the reason (`pytest -rs` prints it).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import fsbl_process  # noqa: E402

os.environ.setdefault("FSBL_DATA_DIR", str(TOP))  # FSBL_BIN may lie elsewhere

PROGRAMS = ("fsbl", "fsbl-agent", "fsbl-worker")
SHORT = {"warm_up": "0.05s", "measure": "0.15s", "cool_down": "0s"}


@pytest.fixture(scope="session")
def programs():
    """The folder with the programs under test."""
    folder = pathlib.Path(os.environ.get("FSBL_BIN") or TOP / "build" / "release" / "bin").resolve()
    missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    assert not missing, f"not in {folder}: {', '.join(missing)}; build first, or set FSBL_BIN"
    return folder


@pytest.fixture(scope="session")
def doctor(programs):
    """{transport: ""} for those that can run here, {transport: reason} for the others."""
    said = subprocess.run([programs / "fsbl", "doctor", "--json"], capture_output=True, text=True, timeout=60)
    found = json.loads(said.stdout)
    testbed = found["testbed"][0]
    if not testbed["usable"]:
        pytest.skip(f"no testbed on this host: {testbed['text']}")
    return {t["name"]: "" if t["usable"] else t["text"] for t in found["transports"]}


@pytest.fixture
def require(doctor):
    """require("mtls"): skips with the reason unless this host can run it."""
    def check(*transports):
        for name in transports:
            assert "another build" not in doctor[name], f"build all of it: {doctor[name]}"
            if doctor[name]:
                pytest.skip(f"{name}: {doctor[name]}")
    return check


def phases(**changed):
    """Options of `fsbl run` for short phases."""
    return [word for key, value in {**SHORT, **changed}.items() for word in ("--set", f"phases.{key}={value}")]


class Runner:
    """Starts fsbl in a folder of the test's own; finish() proves that nothing was left."""

    def __init__(self, programs, cwd):
        self.programs, self.cwd, self.runs = programs, cwd, []
        self.before = fsbl_process.host_traces()

    def start(self, *arguments, environment=None, out=None, **popen):
        folder = self.cwd / (out or f"out{len(self.runs)}")
        if arguments and arguments[0] == "run" and "--out" not in arguments:
            arguments += ("--out", folder)
        run = fsbl_process.Fsbl(self.programs / "fsbl", arguments, popen.pop("cwd", self.cwd), folder, environment, **popen)
        self.runs.append(run)
        return run

    def __call__(self, *arguments, limit=fsbl_process.LIMIT, **how):
        return self.start(*arguments, **how).wait(limit)

    def finish(self):
        alive = [run for run in self.runs if run.popen.poll() is None]
        for run in alive:
            run.end()
        try:
            for run in self.runs:
                fsbl_process.assert_nothing_left(run, self.before)
        finally:
            for run in self.runs:
                shutil.rmtree(run.tmpdir, ignore_errors=True)


@pytest.fixture
def fsbl(programs, tmp_path):
    runner = Runner(programs, tmp_path)
    yield runner
    runner.finish()


@pytest.fixture(scope="module")
def fsbl_once(programs, tmp_path_factory):
    """The same for fixtures whose run serves several tests."""
    runner = Runner(programs, tmp_path_factory.mktemp("once"))
    yield runner
    runner.finish()
