"""The commands beside `run`: report, list, doctor, completion, help, version."""
import json
import shutil
import subprocess

import pytest

import result_checks as check
from conftest import phases

COMMANDS = ["run", "report", "doctor", "list", "completion"]


@pytest.fixture(scope="module")
def measured(fsbl_once, doctor):
    done = fsbl_once("run", "smoke/smoke", "--set", "transports=plaintext,mtls", "--set", "load.shape=request-response,stream",
                     "--set", "repetitions=2", *phases())
    assert done.code == 0, str(done)
    return done


def test_tables_fit_100_columns(measured):
    for line in measured.out.splitlines():
        assert len(line) <= 100, line
    assert "p50" in measured.out and "plaintext" in measured.out and "mTLS" in measured.out
    assert f"result: {measured.folder / 'result.json'}" in measured.err


def test_progress_goes_to_stderr_in_plain_lines(measured):
    lines = [line for line in measured.err.splitlines() if line.startswith("[")]
    assert len(lines) == 8 and lines[-1].startswith("[8/8]"), measured.err
    assert "\x1b" not in measured.err and "\r" not in measured.err


def test_report_writes_every_format(fsbl, measured):
    done = fsbl("report", measured.folder, "--format", "md,csv,json", "--out", "report")
    assert done.code == 0, str(done)
    made = {p.suffix for p in (fsbl.cwd / "report").iterdir()}
    assert {".md", ".csv", ".json"} <= made
    for path in (fsbl.cwd / "report").glob("*.json"):
        json.loads(path.read_text())
    assert (fsbl.cwd / "report" / "FSBL_RESULTS.md").read_text().count("|") > 20


def test_report_of_file_and_folder_are_the_same_text(fsbl, measured):
    by_folder, by_file = fsbl("report", measured.folder), fsbl("report", measured.folder / "result.json")
    assert by_folder.code == by_file.code == 0, str(by_folder)
    assert by_folder.out == by_file.out == measured.out
    assert all(len(line) <= 100 for line in by_folder.out.splitlines())


def test_run_json_is_json_alone(fsbl, doctor):
    done = fsbl("run", "smoke/null", "--json", *phases())
    assert done.code == 0, str(done)
    json.loads(done.out)


def damage_truncated(text):
    return text[:len(text) // 2]


def damage_foreign(text):
    return json.dumps({"hello": "world"})


def damage_major(text):
    return json.dumps({**json.loads(text), "schema": "2.0"})


def damage_empty(text):
    return ""


def damage_nan(text):
    return text.replace('"value": ', '"value": NaN, "was": ', 1)


@pytest.mark.parametrize("damage,word", [(damage_truncated, ""), (damage_foreign, "schema"), (damage_major, "2.0"),
                                         (damage_empty, ""), (damage_nan, "")])
def test_report_refuses_what_is_no_result_of_its_kind(fsbl, measured, damage, word):
    broken = fsbl.cwd / "broken"
    shutil.copytree(measured.folder, broken)
    text = (broken / "result.json").read_text()
    (broken / "result.json").write_text(damage(text))
    done = fsbl("report", "broken", "--format", "md", "--out", "report")
    assert done.code == 2 and "broken" in done.err and word in done.err, str(done)
    assert done.out == "" and "Traceback" not in done.err
    assert not (fsbl.cwd / "report").exists() or not list((fsbl.cwd / "report").iterdir()), "a half report"


def test_report_of_nothing(fsbl):
    done = fsbl("report", "no-such-folder")
    assert done.code == 2 and "no-such-folder" in done.err, str(done)
    done = fsbl("report", "no-such-folder", "--format", "pdf")
    assert done.code == 2, str(done)


@pytest.mark.parametrize("what,some", [("transports", "wireguard-go"), ("tunnels", "none"), ("sessions", "tls"),
                                       ("engines", "openssl"), ("probes", "tcp_info"), ("scenarios", "smoke/smoke")])
def test_list(fsbl, what, some):
    plain, names, as_json = fsbl("list", what), fsbl("list", what, "--names"), fsbl("list", what, "--json")
    assert plain.code == names.code == as_json.code == 0, str(plain)
    listed = json.loads(as_json.out)
    assert some in [row["name"] for row in listed] and all(row["summary"] for row in listed)
    assert names.out.split() == [row["name"] for row in listed]
    assert all(len(line) <= 100 for line in plain.out.splitlines())


def test_list_of_something_else(fsbl):
    done = fsbl("list", "unicorns")
    assert done.code == 2 and "unicorns" in done.err, str(done)


def test_doctor(fsbl, doctor):
    done = fsbl("doctor", "--json")
    assert done.code == 0, str(done)
    found = json.loads(done.out)
    assert set(found) == {"testbed", "transports", "probes", "tuning"}
    for finding in sum(found.values(), []):
        assert {"name", "usable", "text", "fix"} <= set(finding) and finding["text"]
    listed = json.loads(fsbl("list", "transports", "--json").out)
    assert {t["name"] for t in found["transports"]} == {t["name"] for t in listed}
    text = fsbl("doctor")
    assert text.code == 0 and all(len(line) <= 100 for line in text.out.splitlines()), text.out


@pytest.mark.parametrize("command", [[], *[[name] for name in COMMANDS]], ids=["fsbl", *COMMANDS])
def test_help(fsbl, command):
    done = fsbl(*command, "--help")
    assert done.code == 0 and done.out and not done.err, str(done)
    if not command:
        assert all(name in done.out for name in COMMANDS) and "130" in done.out


def test_version(fsbl):
    done = fsbl("--version")
    assert done.code == 0 and done.out.startswith("fsbl ") and done.out.count("\n") == 1, str(done)


@pytest.mark.parametrize("program", ["fsbl-agent", "fsbl-worker"])
def test_other_programs_are_not_for_hands(programs, program):
    said = subprocess.run([programs / program], capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    assert said.returncode == 2 and "by hand" in said.stderr


def test_unknown_command_is_named(fsbl):
    for arguments in (["frobnicate"], []):
        done = fsbl(*arguments)
        assert done.code == 2 and done.out == "" and "--help" in done.err, str(done)
        assert not arguments or "frobnicate" in done.err, done.err


def test_dry_run_measures_nothing(fsbl):
    done = fsbl("run", "smoke/smoke", "--dry-run", "--set", "repetitions=3")
    assert done.code == 0, str(done)
    plan = json.loads(done.out)
    assert len(plan["cells"]) == 3 and len(plan["rounds"]) == 9
    assert not done.folder.exists() and list(fsbl.cwd.iterdir()) == []


def complete(fsbl, script, *words):
    """What bash would offer after these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    code = (f'PATH={fsbl.programs}:$PATH; source {script}; COMP_WORDS=({quoted}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
            '_fsbl; printf "%s\\n" "${COMPREPLY[@]}"')
    said = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, timeout=20, cwd=fsbl.cwd)
    assert said.returncode == 0 and not said.stderr, said.stderr
    return said.stdout.split()


def test_bash_completion(fsbl):
    if not shutil.which("bash"):
        pytest.skip("no bash")
    done = fsbl("completion", "bash")
    assert done.code == 0, str(done)
    script = fsbl.cwd / "completion.bash"
    script.write_text(done.out)
    assert subprocess.run(["bash", "-n", script], timeout=10).returncode == 0
    assert complete(fsbl, script, "fsbl", "r") == ["run", "report"]
    assert "smoke/smoke" in complete(fsbl, script, "fsbl", "run", "sm")
    assert complete(fsbl, script, "fsbl", "run", "smoke/smo") == ["smoke/smoke"]
    assert "--set" in complete(fsbl, script, "fsbl", "run", "smoke/smoke", "--s")
    assert complete(fsbl, script, "fsbl", "list", "tun") == ["tunnels"]
    assert fsbl("completion", "powershell").code == 2
