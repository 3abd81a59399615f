"""scripts/ctest_all.py: the tests of several build folders become one ctest, and no skip goes uncounted."""
import pathlib
import subprocess
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))
import ctest_all  # noqa: E402


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def test_merge_runs_all_and_skips_are_counted(tmp_path, capsys):
    build = tmp_path / "build"
    build.mkdir()
    (build / "CTestTestfile.cmake").write_text("""
add_test(passes "/bin/sh" "-c" "test \\"$A\\" = '1 2' && echo ']]; ]=] $x'")
set_tests_properties(passes PROPERTIES LABELS "unit;fast" ENVIRONMENT "A=1 2;B=3" DEPENDS skips TIMEOUT 9)
add_test(skips "/bin/sh" "-c" "echo 'SKIP: no such device'; exit 77")
add_test(silent "/bin/sh" "-c" "exit 77")
add_test(google "/bin/sh" "-c" "printf '[ RUN      ] A.B\\n/x/y_test.cpp:7: Skipped\\nno PMU\\n\\n[  SKIPPED ] A.B (0 ms)\\n[  SKIPPED ] 1 test, listed below:\\n[  SKIPPED ] A.B\\n'")
""")
    ctest_all.merge(tmp_path / "all", [f"one={build}", f"two={build}:unit"])
    done = run("ctest", "--test-dir", tmp_path / "all", "--output-junit", tmp_path / "junit.xml")
    assert "100% tests passed, 0 tests failed out of 5" in done.stdout, done.stdout
    ctest_all.skips(tmp_path / "junit.xml")
    assert capsys.readouterr().out.splitlines() == [
        "  one.skips: no such device", "  one.silent: no reason given", "  one.google A.B: no PMU", "skipped: 3"]


def test_a_failure_is_a_failure(tmp_path):
    build = tmp_path / "build"
    build.mkdir()
    (build / "CTestTestfile.cmake").write_text('add_test(fails "/bin/false")\n')
    ctest_all.merge(tmp_path / "all", [f"one={build}"])
    assert run("ctest", "--test-dir", tmp_path / "all").returncode != 0


def test_a_label_that_no_test_has_is_an_error(tmp_path):
    (tmp_path / "CTestTestfile.cmake").write_text('add_test(one "/bin/true")\n')
    done = run(sys.executable, SCRIPTS / "ctest_all.py", "merge", tmp_path / "all", f"tsan={tmp_path}:tsan")
    assert done.returncode == 1 and "no test has a label matching 'tsan'" in done.stderr


def test_a_program_that_is_not_built_is_an_error(tmp_path):
    (tmp_path / "CTestTestfile.cmake").write_text('add_test(one "/nowhere/program")\n')
    done = run(sys.executable, SCRIPTS / "ctest_all.py", "merge", tmp_path / "all", f"one={tmp_path}")
    assert done.returncode == 1 and "not built" in done.stderr
