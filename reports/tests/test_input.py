"""What isn't a result is refused with what, why and a way out, and exit 2; nothing is written."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import HERE, SAMPLE

from fsbl_reports import cli


def refused(capsys, *arguments):
    assert cli.main([str(item) for item in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    what, why = captured.err.split(": ", 1)
    assert "; " in why and captured.err.count("\n") == 1
    return captured.err


def test_absent(capsys, tmp_path):
    assert "No such file" in refused(capsys, tmp_path / "nowhere")
    assert "result.json: No such file" in refused(capsys, tmp_path)  # a folder without one


@pytest.mark.parametrize("size", [0, 1, 100, 5000, 200000])
def test_truncated(capsys, write, size):
    text = (SAMPLE / "result.json").read_text(encoding="utf-8")
    error = refused(capsys, write(text[:size]))
    assert "line " in error and "truncated" in error


def test_not_text(capsys, tmp_path):
    (tmp_path / "result.json").write_bytes(b"\xff\xfe\x00{")
    assert "is not text" in refused(capsys, tmp_path)


@pytest.mark.parametrize("content", ["[]", "3", "null", '"text"', "{}", '{"schema": 1}', '{"schema": "1.0"}', "[" * 100000])
def test_not_a_result(capsys, write, content):
    refused(capsys, write(content))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_number(capsys, write, sample, number):
    text = json.dumps(sample).replace('"cv": 0.0', f'"cv": {number}, "x": 0.0', 1)
    refused(capsys, write(text))


def test_another_major(capsys, write, sample):
    sample["schema"] = "2.0"
    assert "schema 2.0" in refused(capsys, write(sample))


def test_newer_minor_and_unknown_fields_are_read(write, sample, golden, capsys):
    sample["schema"] = "1.7"
    sample["news"] = {"x": 1}
    for name in ("transports", "cells", "rounds", "summary"):
        for item in sample[name]:
            item["news"] = [1, 2]
    assert cli.main([str(write(sample))]) == 0
    golden("tables.txt", capsys.readouterr().out)


@pytest.mark.parametrize("name", ["run", "testbed", "scenarios", "transports", "cells", "rounds", "summary"])
def test_missing_part(capsys, write, sample, name):
    del sample[name]
    assert f'"{name}"' in refused(capsys, write(sample))


@pytest.mark.parametrize("name, key", [("transports", "label"), ("cells", "factors"), ("rounds", "validity"), ("summary", "metric")])
def test_missing_field(capsys, write, sample, name, key):
    del sample[name][1][key]
    assert f"{name}[1]" in refused(capsys, write(sample))


def test_unknown_cell(capsys, write, sample):
    sample["summary"][0]["cell"] = "nobody"
    assert "nobody" in refused(capsys, write(sample))


def test_unwritable_folder(capsys, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "write " in refused(capsys, SAMPLE, "--format", "md", "--out", tmp_path / "file")


def test_bad_format(capsys):
    with pytest.raises(SystemExit) as error:
        cli.main([str(SAMPLE), "--format", "md,docx"])
    assert error.value.code == 2
    assert "docx" in capsys.readouterr().err


def test_a_full_disk_leaves_the_old_file(tmp_path, capsys, monkeypatch):
    (tmp_path / "FSBL_RESULTS.md").write_text("old")

    def full(_descriptor):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refused(capsys, SAMPLE, "--format", "md", "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["FSBL_RESULTS.md"]
    assert (tmp_path / "FSBL_RESULTS.md").read_text() == "old"


def test_runs_as_a_module_and_survives_a_closed_pipe():
    reports = pathlib.Path(HERE).parent
    done = subprocess.run(f"'{sys.executable}' -m fsbl_reports '{SAMPLE}' | head -n 1", shell=True, cwd=reports,
                          capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Run ") and done.stderr == ""
