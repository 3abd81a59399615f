"""Kill -9 of any process at any moment, Ctrl-C and SIGTERM: nothing is left, and what was finished is kept."""
import os
import random
import re
import signal
import time

import pytest

import result_checks as check
from conftest import phases
from fsbl_process import assert_nothing_left, wait_until

SEED = 20260101
OURS = ["fsbl", "fsbl-agent", "fsbl-worker"]
KILLS = [(i, "wireguard-go" if i % 10 == 9 else OURS[i % 3]) for i in range(20)]
# How the reason of a failed round names who died.
NAMED = {"fsbl-agent": r"the agent is gone \(killed by SIGKILL\)",
         "fsbl-worker": r"the worker is gone \(killed by SIGKILL\)",
         "wireguard-go": r"wireguard-go ended: killed by SIGKILL|WireGuard daemon"}


def transports(doctor):
    return ",".join(t for t in ("wireguard-go", "mtls", "plaintext") if not doctor[t])


def check_kept(run, complete):
    """What stands in the result's folder after a run that did not end by itself."""
    if not (run.folder / "result.json").exists():
        return []
    result = check.check_result(run.folder)
    assert result["run"]["complete"] is complete
    check.check_files(run.folder)
    return result["rounds"]


@pytest.mark.parametrize("turn,victim", KILLS, ids=[f"{i:02}-{v}" for i, v in KILLS])
def test_kill_at_a_random_moment(fsbl, doctor, turn, victim):
    if victim == "wireguard-go" and doctor["wireguard-go"]:
        pytest.skip(f"wireguard-go: {doctor['wireguard-go']}")
    dice = random.Random(SEED + turn)
    run = fsbl.start("run", "smoke/smoke", "--set", f"transports={transports(doctor)}", "--set", "repetitions=3",
                     *phases())
    time.sleep(dice.uniform(0, 2.0))
    process = run.wait_for(victim)
    time.sleep(dice.uniform(0, 0.3))
    process = run.find(victim, dice.choice(["client", "server", None])) or run.wait_for(victim)
    if process is None:
        assert run.wait().code == 0
        pytest.skip(f"the run was over before {victim} was there to be killed")
    hit = process.kill()
    finished = run.wait(60)
    if victim == "fsbl":
        assert finished.code == -signal.SIGKILL
        assert_nothing_left(run, fsbl.before)
        fsbl.runs.remove(run)
        check_kept(run, complete=False)
        return
    rounds = check_kept(run, complete=True)
    assert len(rounds) == 3 * len(transports(doctor).split(",")), "the run goes on"
    bad = [r for r in rounds if r["validity"]["status"] != "valid"]
    assert len(bad) <= 1, [check.flags_of(r) for r in bad]
    assert finished.code == (5 if bad else 0), str(finished)
    if not bad:  # it was about to end anyway
        pytest.skip(f"{victim} was {'killed' if hit else 'gone'} after its last use: every round is valid")
    assert bad[0]["validity"]["status"] == "failed"
    assert re.search(NAMED[victim], check.flags_of(bad[0])), check.flags_of(bad[0])


@pytest.mark.parametrize("victim,side", [("fsbl-agent", "client"), ("fsbl-agent", "server"), ("fsbl-worker", "client"),
                                         ("fsbl-worker", "server"), ("wireguard-go", "server")])
def test_killed_while_measuring_fails_that_round_only(fsbl, require, victim, side):
    require("wireguard-go")
    run = fsbl.start("run", "smoke/smoke", "--set", "transports=wireguard-go", "--set", "repetitions=2",
                     *phases(warm_up="0.5s", measure="1s"))
    assert run.wait_for("fsbl-worker", "client") and run.wait_for("fsbl-worker", "server")
    time.sleep(0.6)
    process = run.find(victim, side)
    assert process and process.kill()
    finished = run.wait(60)
    assert finished.code == 5, str(finished)
    first, second = check_kept(run, complete=True)
    assert first["validity"]["status"] == "failed"
    assert second["validity"]["status"] == "valid", check.flags_of(second)
    said = check.flags_of(first)
    assert re.search(NAMED[victim], said) and re.search(rf"\b{side}\b", said), said
    assert "1 of 2 rounds failed" in finished.err
    if victim != "wireguard-go":  # whose death is seen when the flows did not drain
        assert finished.seconds < 8, "a dead process is seen at once"


@pytest.mark.parametrize("number,to_group", [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, True),
                                             (signal.SIGTERM, False)],
                         ids=["ctrl-c", "int", "term-group", "term"])
@pytest.mark.parametrize("transport", ["mtls", "wireguard-go"])
def test_cancelled_keeps_what_was_finished(fsbl, require, number, to_group, transport):
    require(transport)
    run = fsbl.start("run", "smoke/smoke", "--set", f"transports={transport}", "--set", "repetitions=50",
                     *phases(measure="0.5s"))
    assert wait_until(lambda: (run.folder / "result.json").exists(), 20), run.text()
    assert run.wait_for("fsbl-worker")
    time.sleep(0.2)
    (os.killpg if to_group else os.kill)(run.pid, number)
    at = time.monotonic()
    finished = run.wait(20)
    assert time.monotonic() - at < 5
    assert finished.code == 130, str(finished)
    rounds = check_kept(run, complete=False)
    assert rounds and all(r["validity"]["status"] == "valid" for r in rounds)
    assert "cancelled" in finished.err and str(run.folder / "result.json") in finished.err
    assert finished.out, "the tables of the finished rounds"


def test_cancelled_before_the_first_round_leaves_no_result(fsbl, doctor):
    run = fsbl.start("run", "smoke/smoke", "--set", "transports=plaintext", *phases(measure="5s"))
    assert run.wait_for("fsbl-worker")
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(20).code == 130
    assert not run.folder.exists()


def test_cancelled_while_the_report_is_made_ends(fsbl, doctor):
    """A second Ctrl-C, or one at the end, must not be swallowed by what comes after the rounds."""
    run = fsbl.start("run", "smoke/smoke", "--set", "transports=plaintext", *phases())
    assert wait_until(lambda: (run.folder / "result.json").exists(), 20)
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(20).code in (0, 130)
    check_kept(run, complete=True)
