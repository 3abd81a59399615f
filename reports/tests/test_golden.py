"""The sample's report, byte for byte."""
from conftest import SAMPLE

from fsbl_reports import cli, document, tidy


def test_markdown(sample, golden):
    golden("FSBL_RESULTS.md", document.markdown(sample))


def test_text(sample, golden):
    golden("tables.txt", document.text(sample))


def test_csv(sample, golden):
    golden("summary.csv", tidy.as_csv(sample))


def test_json(sample, golden):
    golden("summary.json", tidy.as_json(sample))


def test_command_line_writes_the_same(golden, tmp_path, capsys):
    assert cli.main([str(SAMPLE), "--format", "md,csv,json,text", "--out", str(tmp_path / "new" / "folder")]) == 0
    out = tmp_path / "new" / "folder"
    assert sorted(path.name for path in out.iterdir()) == ["FSBL_RESULTS.md", "summary.csv", "summary.json"]
    for path in out.iterdir():
        golden(path.name, path.read_text(encoding="utf-8"))
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == [str(out / name) for name in ("FSBL_RESULTS.md", "summary.csv", "summary.json")]
    golden("tables.txt", "\n".join(printed[3:]) + "\n")
