"""A server that stops reading: the round is marked, the run ends by itself, and the next round is whole."""
import signal
import time

import result_checks as check
from conftest import phases


def test_stopped_server_never_hangs_the_run(fsbl, require):
    require("mtls")
    run = fsbl.start("run", "smoke/smoke", "--set", "transports=mtls", "--set", "load.shape=stream", "--set",
                     "load.payload=64KiB", "--set", "load.streams=4", "--set", "repetitions=2",
                     *phases(warm_up="0.3s", measure="0.2s"))
    assert run.wait_for("fsbl-worker", "client")
    time.sleep(0.3)
    worker = run.find("fsbl-worker", "server")
    assert worker and worker.kill(signal.SIGSTOP)
    done = run.wait(80)
    assert done.code == 5, str(done)
    result = check.check_result(done.folder)
    stalled, after = result["rounds"]
    assert stalled["validity"]["status"] in ("failed", "invalid")
    said = check.flags_of(stalled)
    assert any(word in said for word in ("not-drained", "flow-failed", "too late", "late")), said
    assert after["validity"]["status"] == "valid", check.flags_of(after)
    assert result["run"]["complete"] is True
