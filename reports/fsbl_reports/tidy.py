"""One record per summary row, for spreadsheets (CSV) and programs (JSON). Values in the result's own units."""
import csv
import io
import json

from fsbl_reports.view import View

CSV_NAME = "summary.csv"
JSON_NAME = "summary.json"
FIXED = ("scenario", "cell", "family", "label", "status", "metric", "basis", "side", "quantile", "value", "unit", "better",
         "interval_lo", "interval_hi", "interval_level", "interval_method", "n", "samples", "pooled", "cv",
         "ratio_to_plaintext", "ratio_lo", "ratio_hi", "ratio_level", "ratio_method", "valid_rounds", "rounds", "note")


def records(result):
    """Records with the same keys each, None where there is nothing: the fixed ones, and each factor as factor_NAME.
    A cell without a row and a transport without a cell have one record, whose note is the reason."""
    view = View(result)
    factors = list(dict.fromkeys(["transport", *(key for cell in view.cells for key in cell.factors)]))
    columns = ["scenario", *("factor_" + key for key in factors), *FIXED[1:]]

    def record(**known):
        return {**dict.fromkeys(columns), **known}

    out = []
    for cell in view.cells:
        base = {"scenario": cell.scenario, "cell": cell.id, "family": cell.transport.family, "label": cell.transport.label,
                "valid_rounds": len(cell.valid), "rounds": len(cell.rounds),
                **{"factor_" + key: item for key, item in cell.factors.items()}}
        for row in cell.rows:
            ratio = row.get("ratio_to_plaintext") or {}
            out.append(record(
                **base, status="measured" if row.get("value") is not None else "n/a", note=row.get("note"),
                **{key: row.get(key) for key in ("metric", "basis", "side", "quantile", "value", "unit", "better", "n",
                                                 "samples", "pooled", "cv")},
                **_interval("interval", row.get("interval")), ratio_to_plaintext=ratio.get("value"),
                **_interval("ratio", ratio.get("interval"))))
        if not cell.rows:
            out.append(record(**base, status="not measured", note=cell.why_empty()))
    placed = {cell.transport.name for cell in view.cells}
    for transport in view.unmeasured():
        if transport.name not in placed:
            why = transport.reason + (f"; {transport.fix}" if transport.fix else "")
            out.append(record(factor_transport=transport.name, family=transport.family, label=transport.label,
                              status="not measured", note=why))
    return out


def _interval(name, item):
    return {f"{name}_{key}": (item or {}).get(key) for key in ("lo", "hi", "level", "method")}


def as_csv(result):
    out = io.StringIO()
    rows = records(result)
    writer = csv.DictWriter(out, list(rows[0]) if rows else list(FIXED), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_json(result):
    head = {"schema": result["schema"], "run": result["run"].get("id"), "cells": records(result)}
    return json.dumps(head, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
