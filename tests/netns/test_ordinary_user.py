"""The matrix again without privilege: in user, network and mount namespaces of an ordinary user. Root becomes
`nobody` for it; an installed copy of the programs that nobody can read is made first."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import result_checks as check
import test_matrix
from conftest import PROGRAMS, TOP, Runner, phases

NOBODY = 65534


def as_user():
    """Options of subprocess that make a child an ordinary user's."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


@pytest.fixture(scope="module")
def home(programs):
    """A folder of that user, with an installation (bin/, share/fsbl/) beside it that it can only read."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="fsbl-user-"))
    place.chmod(0o755)
    installed = place / "installed"
    (installed / "bin").mkdir(parents=True)
    for name in [*PROGRAMS, *(module.name for module in programs.glob("fsbl-*.so"))]:
        shutil.copy(programs / name, installed / "bin")
    for name in ("scenarios", "reports"):
        shutil.copytree(TOP / name, installed / "share" / "fsbl" / name)
    subprocess.run(["chmod", "-R", "a+rX", installed], check=True)
    home = place / "home"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    yield home
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def user_fsbl(home):
    """fsbl as that user; skips with the reason where it may not make user namespaces."""
    data = home.parent / "installed" / "share" / "fsbl"
    environment = {"HOME": str(home), "FSBL_DATA_DIR": str(data), "SUDO_UID": "", "SUDO_GID": ""}
    runner = Runner(home.parent / "installed" / "bin", home)
    runner.options = {"environment": environment, **as_user()}
    seen = runner("doctor", "--json", **runner.options)
    found = check.json.loads(seen.out)
    if not found["testbed"][0]["usable"]:
        pytest.skip(f"no testbed for an ordinary user: {found['testbed'][0]['text']}")
    yield runner
    runner.finish()


@pytest.fixture(scope="module")
def done(user_fsbl, home):
    scenarios = test_matrix.write_scenarios(home)
    return user_fsbl("run", *scenarios, "--quiet", limit=240, **user_fsbl.options)


@pytest.fixture(scope="module")
def result(done):
    return done.result


def test_run_is_complete(done, result):
    test_matrix.test_run_is_complete(done, result)


@pytest.mark.parametrize("transport", test_matrix.TRANSPORTS)
def test_every_combination_is_measured_and_valid(result, transport):
    test_matrix.test_every_combination_is_measured_and_valid(result, transport)


@pytest.mark.parametrize("transport", test_matrix.TRANSPORTS)
def test_path_is_proved(result, transport):
    test_matrix.test_path_is_proved(result, transport)


@pytest.mark.parametrize("transport", test_matrix.TRANSPORTS)
def test_handshakes_are_logged_on_both_sides(done, result, transport):
    test_matrix.test_handshakes_are_logged_on_both_sides(done, result, transport)


def test_what_is_missing_has_a_reason(result):
    test_matrix.test_what_is_missing_has_a_reason(result)


def test_files_belong_to_the_user(done, result):
    owner = NOBODY if os.geteuid() == 0 else os.getuid()
    for path in [done.folder, *done.folder.rglob("*")]:
        assert path.lstat().st_uid == owner, path


def test_processes_have_no_privilege_outside(user_fsbl):
    """Seen from here every process of the run is the user's, in namespaces of its own."""
    owner = NOBODY if os.geteuid() == 0 else os.getuid()
    run = user_fsbl.start("run", "smoke/smoke", "--set", "transports=mtls", *phases(measure="1s"), **user_fsbl.options)
    assert run.wait_for("fsbl-worker", "server")
    processes = run.processes()
    assert sorted(p.kind for p in processes) == ["fsbl", "fsbl-agent", "fsbl-agent", "fsbl-worker", "fsbl-worker"]
    for process in processes:
        status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines())
        assert set(status["Uid"].split()) == {str(owner)}, process
        if process.kind == "fsbl-worker":
            assert status["NoNewPrivs"] == "1" and int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    assert run.wait().code == 0


def test_folder_without_permission(user_fsbl, home):
    run = user_fsbl("run", "smoke/null", "--out", "/no-permission", *phases(), **user_fsbl.options)
    assert run.code in (2, 4) and "/no-permission" in run.err and "EACCES" in run.err, str(run)


def test_doctor_says_what_is_missing(user_fsbl):
    seen = user_fsbl("doctor", **user_fsbl.options)
    assert seen.code == 0 and ("in a user namespace" in seen.out or "as this user" in seen.out), str(seen)
