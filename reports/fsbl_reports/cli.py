"""The command line: python3 -m fsbl_reports RESULT --format md,csv,json,text,json-stdout [--out DIR]."""
import argparse
import pathlib
import sys

from fsbl_reports import document, tidy
from fsbl_reports.files import write_whole
from fsbl_reports.load import ReportError, read_result

FILES = {  # format: (file name, what makes it)
    "md": ("FSBL_RESULTS.md", document.markdown),
    "csv": (tidy.CSV_NAME, tidy.as_csv),
    "json": (tidy.JSON_NAME, tidy.as_json),
}
TO_STDOUT = {"text": document.text, "json-stdout": tidy.as_json}


def _formats(text):
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in FILES and name not in TO_STDOUT]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"unknown format {unknown[0] if unknown else '(none)'!r}; known: md, csv, json, text, json-stdout")
    return list(dict.fromkeys(names))


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="fsbl_reports", description="FSBL tables from a result file. text and json-stdout go to stdout; md, csv and json become "
        "FSBL_RESULTS.md, summary.csv and summary.json, whose paths are printed. Exit 2: bad input.")
    parser.add_argument("result", metavar="RESULT", help="a result folder, or its result.json")
    parser.add_argument("--format", type=_formats, default=["text"], metavar="LIST", help="md,csv,json,text,json-stdout (default: text)")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="folder for the files (default: beside the result)")
    options = parser.parse_args(arguments)
    try:
        result, folder = read_result(options.result)
        for name in options.format:
            if name in TO_STDOUT:
                sys.stdout.write(TO_STDOUT[name](result))
                continue
            file_name, make = FILES[name]
            path = (options.out or folder) / file_name
            write_whole(path, make(result))
            print(path)
        sys.stdout.flush()
    except ReportError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has seen enough
        sys.stderr.close()
        return 0
    return 0
