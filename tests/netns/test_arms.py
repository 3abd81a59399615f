"""Arms are interleaved in blocks, in the seed's order, and what an arm changes is recorded."""
import json

import result_checks as check
from conftest import phases

BLOCKS = 3


def order_of(result):
    return [(r["block"], r["cell"]) for r in result["rounds"]]


def test_arms_are_interleaved_in_blocks(fsbl, doctor):
    arguments = ["run", "smoke/smoke", "--set", "transports=plaintext", "--arm", "a:", "--arm", "b:testbed.mtu=9000",
                 "--set", f"repetitions={BLOCKS}", *phases()]
    first, second = (fsbl(*arguments, "--set", "seed=7") for _ in range(2))
    other = fsbl(*arguments, "--set", "seed=8")
    results = []
    for done in (first, second, other):
        assert done.code == 0, str(done)
        results.append(check.check_result(done.folder))
    cells = {cell["id"]: cell for cell in results[0]["cells"]}
    assert {(c["arm"], c["config"]["testbed"]["mtu"]) for c in cells.values()} == {("a", 1500), ("b", 9000)}
    order = order_of(results[0])
    assert [block for block, _ in order] == [0, 0, 1, 1, 2, 2]
    for block in range(BLOCKS):
        assert {cell for b, cell in order if b == block} == set(cells), "a block holds every cell once"
    assert order_of(results[1]) == order, "the same seed, the same order"
    assert [row["cell"] for row in results[0]["summary"]], "both arms have a summary"
    assert {row["cell"] for row in results[0]["summary"]} == set(cells)
    for r in results[0]["rounds"]:
        mtu = cells[r["cell"]]["config"]["testbed"]["mtu"]
        for side in ("client", "server"):
            assert r["details"][side]["attachment"]["outer"]["mtu"] == mtu, "the arm did not reach the link"


def test_seeds_decide_the_order(fsbl):
    def planned(seed):
        done = fsbl("run", "smoke/directions", "--dry-run", "--set", "repetitions=2", "--set", f"seed={seed}")
        assert done.code == 0, str(done)
        return json.loads(done.out)["rounds"]
    assert planned(1) == planned(1)
    assert planned(1) != planned(2)


def test_sysctl_arms_reach_their_namespace_and_are_recorded(fsbl, doctor):
    key, values = "net.ipv4.tcp_rmem", {"small": "4096 16384 65536", "large": "4096 131072 8388608"}
    arms = [word for name, value in values.items() for word in ("--arm", f"{name}:testbed.sysctls.server.{key}={value}")]
    done = fsbl("run", "smoke/smoke", "--set", "transports=plaintext", "--set", "load.shape=stream",
                "--set", "load.payload=64KiB", *arms, "--set", "repetitions=2", *phases())
    assert done.code == 0, str(done)
    result = check.check_result(done.folder)
    assert {c["arm"]: c["config"]["testbed"]["sysctls"]["server"] for c in result["cells"]} == \
        {name: {key: value} for name, value in values.items()}
    assert all(c["config"]["testbed"]["sysctls"]["client"] == {} for c in result["cells"])
    rates = {}
    for r in result["rounds"]:
        arm = next(c["arm"] for c in result["cells"] if c["id"] == r["cell"])
        rates.setdefault(arm, []).append(check.series(r, "throughput")[0]["value"])
        read_back = r["details"].get("testbed", {}).get("server", {}).get("sysctls", {}).get(key, "not recorded")
        assert read_back.split() == values[arm].split(), "what the namespace really had, by round"
    assert max(rates["small"]) < max(rates["large"]), f"64 KiB of window is as fast as 8 MiB: {rates}"


def test_offloads_are_set_and_read_back(fsbl, doctor):
    done = fsbl("run", "smoke/smoke", "--set", "transports=plaintext", "--arm", "on:testbed.offloads.tso=on",
                "--arm", "off:testbed.offloads.tso=off", *phases())
    assert done.code == 0, str(done)
    result = check.check_result(done.folder)
    for r in result["rounds"]:
        arm = next(c["arm"] for c in result["cells"] if c["id"] == r["cell"])
        for side in ("client", "server"):
            assert r["details"][side]["offloads"]["tso"] is (arm == "on")
