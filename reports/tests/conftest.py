"""Shared by the tests of fsbl_reports. Golden files: `pytest --update-golden` writes them anew; read the difference."""
import copy
import json
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
SAMPLE = HERE.parent / "testdata" / "sample"


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture(scope="session")
def _sample():
    return json.loads((SAMPLE / "result.json").read_text(encoding="utf-8"))


@pytest.fixture
def sample(_sample):
    """The sample result, for the test to change as it likes."""
    return copy.deepcopy(_sample)


@pytest.fixture
def golden(request):
    """Compares with a file in golden/."""
    def compare(name, text):
        path = HERE / "golden" / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is not there: run pytest --update-golden once"
        assert text == path.read_text(encoding="utf-8")
    return compare


@pytest.fixture
def write(tmp_path):
    """Puts text or JSON where the command line finds it."""
    def put(content):
        path = tmp_path / "result.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path
    return put
