"""worker.binary is another program: a clear error that ends the round, never a hang."""
import os
import pathlib
import shutil
import subprocess

import pytest

import result_checks as check
from conftest import HERE, phases

# What foreign_worker.c does → what the round's reason must say, and the most seconds that may take.
BEHAVIOURS = {
    "silent": (["worker: hello", "too late"], 12),
    "garbage": (["the worker", "malformed"], 8),
    "oversized": (["the worker", "oversized"], 8),
    "cut": (["worker: hello", "gone"], 8),
    "no-json": (["worker", "malformed"], 8),
    "wrong-types": (["worker", "malformed"], 8),
    "no-object": (["worker", "malformed"], 8),
    "other-id": (["worker", "out of step"], 8),
    "dies": (["worker: setup", "gone (killed by SIGABRT)"], 8),
    "empty-answers": (["malformed"], 15),
    "strange-answers": (["malformed"], 15),
}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """The compiled foreign_worker.c, where nobody may run it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler for a foreign worker")
    folder = pathlib.Path(tmp_path_factory.mktemp("foreign"))
    program = folder / "foreign"
    subprocess.run([compiler, "-O1", "-o", program, HERE / "foreign_worker.c"], check=True)
    return program


def run_with(fsbl, program, *more):
    return fsbl("run", "smoke/smoke", "--set", "transports=plaintext", "--set", f"worker.binary={program}", *more,
                *phases(), limit=60)


def reason_of(done):
    result = check.check_result(done.folder)
    assert [r["validity"]["status"] for r in result["rounds"]] == ["failed"]
    assert result["rounds"][0]["accounting"]["done"] == 0
    return check.flags_of(result["rounds"][0])


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_strange_answers_end_the_round(fsbl, doctor, foreign, behaviour):
    words, seconds = BEHAVIOURS[behaviour]
    done = run_with(fsbl, foreign, "--set", f"worker.environment.FOREIGN={behaviour}")
    assert done.code == 5, str(done)
    reason = reason_of(done)
    for word in words:
        assert word in reason, f"'{word}' is missing in: {reason}"
    assert done.seconds < seconds


def test_other_protocol_is_bad_input(fsbl, doctor, foreign):
    done = run_with(fsbl, foreign, "--set", "worker.environment.FOREIGN=other-protocol")
    assert done.code == 2 and "protocol 999" in done.err and str(foreign) in done.err, str(done)
    assert "same major version" in done.err


@pytest.mark.parametrize("program,status", [("/bin/true", "exit status 0"), ("/bin/cat", "exit status 1")])
def test_program_that_ends_at_once(fsbl, doctor, program, status):
    done = run_with(fsbl, program)
    assert done.code == 5, str(done)
    assert f"the worker is gone ({status})" in reason_of(done)
    assert done.seconds < 8


def test_script_is_no_hang(fsbl, doctor):
    script = fsbl.cwd / "worker.sh"
    script.write_text("#!/bin/sh\nprintf garbage >&3\nsleep 60\n")
    script.chmod(0o755)
    done = run_with(fsbl, script)
    assert done.code in (2, 5) and done.seconds < 15, str(done)
    assert "worker" in done.err


@pytest.mark.parametrize("mode", [0o644, 0o700])
def test_program_that_not_everybody_may_run(fsbl, doctor, programs, mode):
    copy = fsbl.cwd / "mine"
    shutil.copy(programs / "fsbl-worker", copy)
    copy.chmod(mode)
    done = run_with(fsbl, copy)
    assert done.code == 2 and str(copy) in done.err and "chmod a+rx" in done.err, str(done)


def test_another_build_of_the_worker_works(fsbl, doctor, programs):
    copy = fsbl.cwd / "mine"
    shutil.copy(programs / "fsbl-worker", copy)
    done = run_with(fsbl, copy, "--set", "worker.environment.HELLO=there")
    assert done.code == 0, str(done)
    cell = check.check_result(done.folder)["cells"][0]["config"]["worker"]
    assert cell == {"binary": str(copy), "environment": {"HELLO": "there"}}
    assert os.access(copy, os.X_OK)
