"""What holds for every result file, whatever was run."""
import hashlib
import json
import pathlib

import jsonschema

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEMA = json.loads((TOP / "reports" / "schema" / "result.schema.json").read_text(encoding="utf-8"))
HANDSHAKE = {"time", "side", "peer_id", "serial", "version", "cipher", "group", "signature", "resumed", "result"}
ISSUANCE = {"time", "side", "spiffe_id", "serial", "not_before", "not_after", "key_type"}
REFUSAL = {"time", "side", "by", "reason"}
LOGS = {"logs/handshakes.jsonl": HANDSHAKE, "logs/issuance.jsonl": ISSUANCE, "logs/refusals.jsonl": REFUSAL}
MADE_BY_REPORT = {"FSBL_RESULTS.md", "summary.csv"}


def check_result(folder):
    """Schema, logs with their digests, the plan's order, and accounts that balance. Returns the result."""
    folder = pathlib.Path(folder)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"), parse_constant=lambda word: 1 / 0)
    jsonschema.Draft202012Validator(SCHEMA).validate(result)

    assert {log["path"] for log in result["logs"]} == set(LOGS)
    for log in result["logs"]:
        content = (folder / log["path"]).read_bytes()[:log.get("bytes")]
        assert hashlib.sha256(content).hexdigest() == log["sha256"], log["path"]
        entries = [json.loads(line) for line in content.splitlines()]
        assert len(entries) == log["entries"], log["path"]
        for entry in entries:
            assert LOGS[log["path"]] <= set(entry), (log["path"], entry)

    cells = {cell["id"] for cell in result["cells"]}
    assert len(cells) == len(result["cells"]), "a cell's id is there twice"
    assert [r["order"] for r in result["rounds"]] == list(range(len(result["rounds"])))
    assert len({(r["cell"], r["block"]) for r in result["rounds"]}) == len(result["rounds"])
    for r in result["rounds"]:
        assert r["cell"] in cells
        check_round(r)
    valid = {r["cell"] for r in result["rounds"] if r["validity"]["status"] == "valid"}
    for row in result["summary"]:
        counts = row["cell"] in valid
        assert counts or (row["value"] is None and row["n"] == 0), f"a summary of rounds that don't count: {row}"
    return result


def check_round(r):
    status, flags = r["validity"]["status"], r["validity"]["flags"]
    assert (status == "valid") == (not any(f["invalidates"] for f in flags)), (r["cell"], flags)
    a = r["accounting"]
    assert a["planned"] == a["done"] + a["failed"] + a["outstanding_at_end"] + a["unsent"], (r["cell"], a)
    attempts = r["attempts"]
    assert attempts["accepted"] + sum(attempts["refused_by_reason"].values()) <= attempts["planned"], (r["cell"], attempts)
    if status == "valid":
        assert a["done"] > 0 and a["failed"] == 0 and a["outstanding_at_end"] == 0, (r["cell"], a)
        assert attempts["accepted"] == attempts["planned"] and not attempts["refused_by_reason"]
        assert r["path"]["verdict"] != "contradicted"


def check_files(folder):
    """Nothing but the result, its logs and what the report makes of them: no half file."""
    found = {str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if not p.is_dir()}
    extra = found - {"result.json", *LOGS} - MADE_BY_REPORT
    assert not extra, f"unexpected files: {extra}"


def read_log(folder, path):
    text = (pathlib.Path(folder) / path).read_text(encoding="utf-8")
    assert not text or text.endswith("\n"), f"{path}: its last line is cut"
    return [json.loads(line) for line in text.splitlines()]


def of_cell(entries, cell):
    return [entry for entry in entries if entry["cell"] == cell]


def flags_of(r):
    return " | ".join(f"{f['code']}: {f['value']}" for f in r["validity"]["flags"])


def series(r, metric):
    return [s for s in r["series"] if s["metric"] == metric]
