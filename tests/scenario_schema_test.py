"""The published scenario schema agrees with the parser: what one takes, the other takes; what one refuses by the
schema's means, the other refuses. (harness/scenario's own tests put the same files through the parser.)"""
import json
import pathlib

import pytest

jsonschema = pytest.importorskip("jsonschema", reason="no python3-jsonschema")
yaml = pytest.importorskip("yaml", reason="no python3-yaml")

TOP = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = json.loads((TOP / "scenarios/schema/scenario.schema.json").read_text())
DATA = TOP / "harness/scenario/testdata"


class Loader(yaml.SafeLoader):
    """YAML 1.2 scalars, as the parser reads them: only true and false are booleans, a date is text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def errors(path):
    document = yaml.load(path.read_text(), Loader)
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)]


def files(*folders):
    return [pytest.param(path, id=str(path.relative_to(TOP))) for folder in folders for path in sorted(folder.rglob("*.yaml"))]


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", files(TOP / "scenarios", DATA / "good"))
def test_good_documents_pass(path):
    assert errors(path) == []


@pytest.mark.parametrize("path", files(DATA / "bad"))
def test_bad_documents_fail(path):
    assert errors(path) != []
