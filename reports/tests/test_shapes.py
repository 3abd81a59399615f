"""Results of other shapes than the sample: few and many transports, nothing valid, other factors. All fit the width."""
import csv
import io
import json

import pytest

from fsbl_reports import document, tidy
from fsbl_reports.grid import WIDTH


def rendered(result):
    """The text form, after the checks that hold for every result."""
    text = document.text(result)
    assert max(map(len, text.splitlines())) <= WIDTH
    for form in (text, document.markdown(result), tidy.as_csv(result), tidy.as_json(result)):
        assert "nan" not in form.lower().replace("nanos", "") and "None" not in form
    json.loads(tidy.as_json(result))
    return text


def only(sample, names):
    """The sample with these transports."""
    sample["transports"] = [item for item in sample["transports"] if item["name"] in names]
    sample["cells"] = [item for item in sample["cells"] if item["factors"]["transport"] in names]
    kept = {cell["id"] for cell in sample["cells"]}
    for part in ("rounds", "summary"):
        sample[part] = [item for item in sample[part] if item["cell"] in kept]
    return sample


def line_of(text, start, words=""):
    return next(line for line in text.splitlines() if line.strip().startswith(start) and words in line)


def test_one_transport(sample):
    text = rendered(only(sample, {"mtls"}))
    assert "Plaintext" in text and "no transport of this family in this scenario" in text
    assert "mTLS · OpenSSL (CPU)" in text


def test_twelve_transports(sample):
    for i in range(4):
        name = f"wireguard+tls+engine{i}"
        sample["transports"].append({"name": name, "label": f"WireGuard ∘ mTLS · an engine with a long name {i} (CPU)",
                                     "family": "mtls-software", "status": "unavailable", "reason": "word " * 40, "fix": "f"})
    text = rendered(sample)
    assert text.count("an engine with a") >= 12  # a row in each of the three tables, for each of the four
    assert len(sample["transports"]) == 12


def test_congestion_control_is_a_condition(sample):
    def with_control(names):
        for i, item in enumerate(sample["rounds"]):
            item["details"]["client"]["reading"] = {"tcp": [{"congestion": names[i % len(names)]}]}
        return line_of(rendered(sample), "Congestion control:")

    assert with_control(["reno"]) == "Congestion control: reno"
    assert "bbr (paced by a timer" in with_control(["bbr"])
    assert with_control(["cubic", "bbr"]).startswith("Congestion control: bbr (paced")  # both, in the order of the cells
    sample["rounds"][0]["details"]["client"]["reading"] = {"tcp": "missing: no such probe"}
    rendered(sample)


def test_every_round_invalid(sample):
    for item in sample["rounds"]:
        item["validity"] = {"status": "invalid", "flags": [{"code": "bytes-unreconciled", "value": 1, "limit": 0, "invalidates": True}]}
    sample["summary"] = []
    text = rendered(sample)
    assert "no valid round of 3: bytes-unreconciled" in line_of(text, "plaintext  ")
    assert text.count(": invalid: bytes-unreconciled 1 (limit 0)") == len(sample["rounds"])
    assert all(record["status"] == "not measured" for record in tidy.records(sample))


def test_nothing_ran(sample):
    sample["rounds"], sample["summary"] = [], []
    sample["run"]["complete"] = False
    text = rendered(sample)
    assert "INCOMPLETE" in text and "no round was run" in text


def test_empty_result(sample):
    for part in ("scenarios", "transports", "cells", "rounds", "summary"):
        sample[part] = []
    assert rendered(sample).startswith("Run ")


def test_reasons_stand_in_the_row_and_fixes_in_the_list(sample):
    text = rendered(sample)
    assert "not measured: no CUDA device" in line_of(text, "mTLS · CUDA")
    assert text.count("run on a host with an NVIDIA GPU") == 2  # both GPU transports, once each


def test_invalid_rounds_show_in_the_count(sample):
    text = rendered(sample)
    assert " 2/3 " in line_of(text[text.index("1 MiB request: round"):], "mTLS · OpenSSL")
    assert "[897, 899] 50 % range" in text  # two runs: the true level, not 95 %
    assert "block 1: invalid: steal" in text


def test_pooled_and_unprinted_quantiles(sample):
    text = rendered(sample)
    assert "~1150" in text and "~ pooled" in text
    assert "n/a (n=2471)" in text


def test_unproved_path_marks_the_row(sample):
    assert "‡" not in rendered(sample)
    for item in sample["rounds"]:
        if item["cell"].startswith("fsbl/throughput|mtls"):
            item["path"]["verdict"] = "unproven"
            item["path"]["layers"][1].update(verdict="unproven", witnessed="nothing")
    text = rendered(sample)
    assert line_of(text, "‡ mTLS · OpenSSL", "n=3")
    assert "path unproven in 9 of 15 rounds, proved in 6 of 15 rounds" in text
    assert 'seen "nothing"' in " ".join(text.split())  # the line is wrapped
    assert text.count("‡ plaintext") == 0


def test_offloaded_is_said_of_the_family_only(sample):
    """The word comes from the result's own family, never from a label of ours."""
    assert "offloaded" not in rendered(only(sample, {"plaintext", "mtls"})).replace("mTLS, offloaded", "")


@pytest.mark.parametrize("factor, values", [("mtu", (1500, 9000)), ("arm", ("old", "new")), ("direction", ("up", "down"))])
def test_another_factor_makes_tables_of_its_own(sample, factor, values):
    twin = json.loads(json.dumps(sample))
    for part in ("cells", "rounds", "summary"):
        for item in twin[part]:
            key = "id" if part == "cells" else "cell"
            item[key] += "|" + str(values[1])
            if part == "cells":
                item["factors"][factor] = values[1]
        sample[part] += twin[part]
    for cell in sample["cells"][:15]:
        cell["factors"][factor] = values[0]
    text = rendered(sample)
    for item in values:
        assert f"Latency, 64 KiB request, {factor} {item}: round trip" in text
        assert f"Throughput, {factor} {item}: authenticated" in text


def test_a_swept_cipher_makes_rows_in_the_same_table(sample):
    for part in ("cells", "rounds", "summary"):
        key = "id" if part == "cells" else "cell"
        for item in [item for item in sample[part] if "|mtls|" in item[key]]:
            item = json.loads(json.dumps(item))
            item[key] += "|chacha"
            if part == "cells":
                item["factors"]["cipher"] = "TLS_CHACHA20_POLY1305_SHA256"
            sample[part].append(item)
    text = rendered(sample)
    assert text.count("Latency, 64 KiB request: round trip") == 1
    for cipher in ("TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_256_GCM_SHA384"):
        assert "89.5" in line_of(text, f"mTLS · OpenSSL (CPU), {cipher}", "12267")


def test_many_stream_counts_are_cut_into_bands(sample):
    cells = [cell for cell in sample["cells"] if cell["factors"]["shape"] == "stream"]
    for cell in cells:
        for i in range(4):
            clone = json.loads(json.dumps(cell))
            clone["id"] += f"x{i}"
            clone["factors"]["streams"] += 1000 + i
            sample["cells"].append(clone)
            sample["summary"] += [{**row, "cell": clone["id"]} for row in sample["summary"] if row["cell"] == cell["id"]]
            sample["rounds"] += [{**row, "cell": clone["id"]} for row in sample["rounds"] if row["cell"] == cell["id"]]
    assert "1103 streams" in rendered(sample)


def test_open_loop_counts_from_intended(sample):
    for row in list(sample["summary"]):
        if row["metric"] == "latency":
            sample["summary"].append({**row, "basis": "intended", "value": row["value"] and row["value"] * 10})
    for item in sample["rounds"]:
        item["series"] += [{**series, "basis": "intended"} for series in item["series"] if series["metric"] == "latency"]
    text = rendered(sample)
    assert " 523 " in line_of(text, "plaintext  ")
    assert "Load: open loop" in text


def test_other_readings_are_not_lost(sample):
    cell = sample["cells"][0]["id"]
    sample["summary"].append({"cell": cell, "metric": "cycles_per_byte", "basis": "window", "side": "server", "unit": "1/B",
                              "value": 1.234, "n": 3})
    assert "cycles_per_byte server window, 1/B | 1.23" in document.markdown(sample)


def test_markdown_cannot_be_broken_by_a_reason(sample):
    sample["transports"][1]["reason"] = "a | b\n<script>"
    line = line_of(document.markdown(sample), "| WireGuard · kernel")
    assert "a \\| b &lt;script>" in line
    head = line_of(document.markdown(sample), "| transport | p50")
    assert line.count("|") - line.count("\\|") == head.count("|")


def test_csv_has_one_row_per_summary_row_and_every_factor(sample):
    rows = list(csv.DictReader(io.StringIO(tidy.as_csv(sample))))
    measured = [row for row in rows if row["cell"]]
    assert len(measured) == len(sample["summary"])
    for row, source in zip(measured, sample["summary"]):
        assert row["metric"] == source["metric"]
        if source["value"] is not None:
            assert float(row["value"]) == source["value"]
    assert {"factor_" + key for key in sample["cells"][0]["factors"]} <= set(rows[0])
    assert [row["factor_transport"] for row in rows if not row["cell"]] == [
        item["name"] for item in sample["transports"] if item["status"] == "unavailable" and item["name"].startswith("wireguard")
    ] + [item["name"] for item in sample["transports"] if item["status"] == "unavailable" and item["name"].startswith("mtls")]
