"""Reading a result file: refuses what isn't one, and says what, why, and what to do."""
import json
import math
import pathlib

SCHEMA_MAJOR = "1"


class ReportError(Exception):
    """Bad input: "what: why; fix"."""

    def __init__(self, what, why, fix=""):
        super().__init__(f"{what}: {why}" + (f"; {fix}" if fix else ""))


def _finite(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is out of range")
    return value


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def _require(condition, what, why):
    if not condition:
        raise ReportError(what, why, "give a result.json that `fsbl run` wrote")


def _check(result, what):
    """The parts that the tables stand on; everything else may be absent, and unknown fields are ignored."""
    _require(isinstance(result, dict), what, "is JSON, but not a result: no object at the top")
    schema = result.get("schema")
    _require(isinstance(schema, str), what, 'is JSON, but not a result: no "schema"')
    if schema.split(".")[0] != SCHEMA_MAJOR:
        raise ReportError(what, f"has schema {schema}, and this program reads {SCHEMA_MAJOR}.x",
                          "use the fsbl that wrote it")
    for name, kind in (("run", dict), ("testbed", dict), ("scenarios", list), ("transports", list), ("cells", list),
                       ("rounds", list), ("summary", list)):
        _require(isinstance(result.get(name), kind), what, f'"{name}" is missing or has the wrong type')
    for name, keys in (("transports", ("name", "label", "family")), ("cells", ("id", "scenario", "factors")),
                       ("rounds", ("cell", "validity")), ("summary", ("cell", "metric"))):
        for i, item in enumerate(result[name]):
            _require(isinstance(item, dict), what, f"{name}[{i}] is not an object")
            for key in keys:
                _require(key in item, what, f'{name}[{i}] has no "{key}"')
    known = {cell["id"] for cell in result["cells"]}
    for name in ("rounds", "summary"):
        for i, item in enumerate(result[name]):
            _require(item["cell"] in known, what, f"{name}[{i}] names the unknown cell {item['cell']}")


def read_result(place):
    """The result in a file, or in a folder's result.json, and the folder it lies in."""
    path = pathlib.Path(place)
    if path.is_dir():
        path = path / "result.json"
    what = f"read result {path}"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ReportError(what, error.strerror or str(error), "give a result folder or its result.json") from error
    except UnicodeDecodeError as error:
        raise ReportError(what, "is not text", "give a result folder or its result.json") from error
    try:
        result = json.loads(text, parse_float=_finite, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ReportError(what, f"line {error.lineno}, column {error.colno}: {error.msg} (truncated or damaged?)",
                          "use an intact copy") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(what, str(error), "use an intact copy") from error
    _check(result, what)
    return result, path.parent
