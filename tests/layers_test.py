#!/usr/bin/env python3
"""The includes of harness/, transports/, modules/ and bench/ respect the layer table of harness/DESIGN.md, and files stay readable.

The table is read from DESIGN.md itself (the block under "## Layers"), so text and test can't disagree. A layer may
include itself and what its row names; its tests and its main.cpp no more than that. Then faults are planted in a
copy, and each must be found. Prints each failure as file:line: text; exit 1 if there is one.
"""
import pathlib
import re
import shutil
import sys
import tempfile

MAX_LINES = 500
SOURCES = ("harness", "transports", "modules", "bench")
TOP = pathlib.Path(__file__).resolve().parent.parent


def layer_table(design):
    """{layer: allowed layers}, from the indented rows `name  what it is  allowed allowed ...` under "## Layers"."""
    text = design.read_text()
    section = re.search(r"^## Layers$(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not section:
        raise SystemExit(f"{design}:1: no section '## Layers'")
    rows = [re.split(r"\s{2,}", line.strip(), 2) for line in section[1].splitlines() if line.startswith("    ")]
    table = {}
    for row in rows:
        if len(row) == 2:  # the name fills its column: one blank before the text
            row = row[0].split(None, 1) + row[1:]
        name, allowed = row[0], row[2]
        names = set(allowed.replace(",", " ").split())
        if allowed.startswith("("):
            names = set()
        elif allowed.startswith("all of the above"):
            names = set(table) - set(re.findall(r"\w+", allowed.partition(" but ")[2]))
        elif match := re.fullmatch(r"(\w+) and below", allowed):
            names = {match[1]} | table[match[1]]
        table[name] = names | {name}
    for name, names in table.items():
        for unknown in sorted(names - set(table)):
            raise SystemExit(f"{design}:1: layer {name} may include {unknown}, which has no row")
    return table


def layer_of(path):
    """The layer of a file or of an include, from its path below the top: harness/core/error.h is core."""
    parts = pathlib.PurePosixPath(path).parts
    return parts[1] if parts[0] == "harness" else parts[0]


def check(top):
    """Every failure as 'file:line: text'."""
    table = layer_table(top / "harness/DESIGN.md")
    failures = []
    for root in SOURCES:
        for path in sorted((top / root).rglob("*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            name = path.relative_to(top).as_posix()
            layer = layer_of(name)
            if layer not in table:
                failures.append(f"{name}:1: layer {layer} has no row in harness/DESIGN.md, '## Layers'")
                continue
            lines = path.read_text().splitlines()
            if len(lines) > MAX_LINES:
                failures.append(f"{name}:{len(lines)}: {len(lines)} lines; split it, {MAX_LINES} are the limit")
            for number, line in enumerate(lines, 1):
                match = re.match(r'\s*#\s*include\s+[<"]([^">]+)[">]', line)
                if match and match[1].startswith(tuple(root + "/" for root in SOURCES)):
                    other = layer_of(match[1])
                    if other not in table[layer]:
                        failures.append(f"{name}:{number}: {layer} may not include {other} ({match[1]})")
                elif match and line.split("include", 1)[1].strip().startswith('"') and "/" in match[1]:
                    failures.append(f"{name}:{number}: {match[1]} is in none of {', '.join(SOURCES)}")
    return failures


def self_test():
    """Each planted fault is found, and nothing else is."""
    plants = {
        "harness/core/planted.h": ('// planted\n#include "harness/stats/interval.h"\n', "planted.h:2: core may not include stats"),
        "harness/stats/planted_test.cpp": ('#include "transports/tunnel/x.h"\n', "stats may not include transports"),
        "transports/tunnel/planted.cpp": ('#  include <harness/run/run.h>\n', "transports may not include run"),
        "harness/newlayer/planted.cpp": ("int x;\n", "layer newlayer has no row"),
        "harness/core/planted_long.cpp": ("\n" * (MAX_LINES + 1), f"{MAX_LINES + 1} lines"),
        "modules/planted/planted.cpp": ('#include "harness/run/runner.h"\n', "modules may not include run"),
        "transports/record/planted.cpp": ('#include "modules/cryptodev/eal.h"\n', "transports may not include modules"),
        "harness/core/planted_up.cpp": ('#include "../stats/interval.h"\n', "is in none of harness"),
    }
    before = set(check(TOP))
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch)
        for root in SOURCES:
            shutil.copytree(TOP / root, copy / root)
        for name, (text, _) in plants.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_text(text)
        found = set(check(copy)) - before
    failures = [f"{name}:1: planted fault not found: {words}" for name, (_, words) in plants.items()
                if not any(words in failure and name.split("/")[-1] in failure for failure in found)]
    if len(found) != len(plants):
        failures.append(f"tests/layers_test.py:1: {len(plants)} faults planted, {len(found)} found: {sorted(found)}")
    return failures


def main():
    failures = check(TOP) + self_test()
    print("\n".join(failures) if failures else f"layers: {len(layer_table(TOP / 'harness/DESIGN.md'))} layers, all includes allowed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
