"""Tests of scripts/compare_peers. FSBL_BIN names the folder with fsbl's programs; what needs them, or a peer tool, or a
network namespace, is skipped with the reason where it is not there."""
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "scripts"))
