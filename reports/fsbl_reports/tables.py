"""The two FSBL tables: latency percentiles per payload, throughput per stream count."""
from fsbl_reports import numbers
from fsbl_reports.grid import Grid, Row
from fsbl_reports.view import by_family, cell_text, shape_of, variants

QUANTILES = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"), (1, "max"))
WITH_INTERVAL = QUANTILES[:3]
SPREAD = ["value", "interval", "ratio to plaintext", "n", "CV"]
UNPROVED = "‡ "
NO_MEMBER = "no transport of this family in this scenario"


def value(row):
    """The value of a summary row in the table's unit, or n/a with what stood behind it."""
    if row is None:
        return "n/a"
    if row.get("value") is None:
        return row["note"].split(";")[0] if row.get("note", "").startswith("n/a") else f"n/a (n={row.get('samples', 0)})"
    if row.get("unit") == "1" and row["value"] == int(row["value"]):
        return str(int(row["value"]))  # a count
    _, scale = numbers.scale_of(row.get("unit", ""))
    return ("~" if row.get("pooled") else "") + numbers.significant(row["value"] / scale)


def interval(row):
    if row is None or row.get("value") is None:
        return "n/a"
    _, scale = numbers.scale_of(row.get("unit", ""))
    text = numbers.interval(row.get("interval"), scale)
    if text:
        return text
    return "pooled" if row.get("pooled") else f"none (n={row.get('n', 0)})"


def ratio(row, transport):
    """How many times plaintext's value, with its interval."""
    if transport.family == "plaintext":
        return "1"
    item = (row or {}).get("ratio_to_plaintext")
    if not item or item.get("value") is None:
        return "n/a"
    text = numbers.significant(item["value"])
    between = numbers.interval(item.get("interval"))
    return f"{text} {between}" if between else text


def cv(row):
    return "n/a" if row is None or row.get("cv") is None else f"{row['cv'] * 100:.1f} %"


def runs(cell):
    """Valid runs, and of how many when some don't count."""
    valid, all_rounds = len(cell.valid), len(cell.rounds)
    return str(valid) if valid == all_rounds else f"{valid}/{all_rounds}"


def marked(label, cells):
    """The label, marked when a round that counts had no proof of its path."""
    proved = all((item.get("path") or {}).get("verdict") == "proved" for cell in cells for item in cell.valid)
    return label if proved else UNPROVED + label


def rows_of(view, cells, fill):
    """Rows in families, every transport of the scenario among them. fill(its cells) gives the cells of a row, or a
    text that spans it."""
    placed = {cell.transport.name for cell in view.cells}
    lines = view.lines(cells)
    lines += [(item, item.label, []) for item in view.transports if item.name not in placed]
    rows = []
    for heading, transports in by_family(view, {transport.name for transport, _, _ in lines}):
        rows.append(Row(heading, group=True, span="" if transports else NO_MEMBER))
        for transport in transports:
            for label, own in [(label, own) for owner, label, own in lines if owner is transport]:
                made = fill(own) if own else "not measured: " + transport.reason
                rows.append(Row(label, span=made) if isinstance(made, str) else Row(marked(label, own), made))
    return rows


def spread_rows(view, cells, rows_of_cell):
    """Rows of the second table: under each measured line, what rows_of_cell gives: (name, summary row)."""
    rows = []
    for transport, label, own in view.lines(cells):
        found = [(name, row) for cell in own for name, row in rows_of_cell(cell) if row]
        rows += [Row(marked(label, own), group=True)] if found else []
        rows += [Row(name, [value(row), interval(row), ratio(row, transport), str(row.get("n", 0)), cv(row)])
                 for name, row in found]
    return rows


def legend(view):
    """What the words and marks in the tables mean, for those that occur."""
    rows = [row for cell in view.cells for row in cell.rows if row["metric"] in ("latency", "throughput")]
    methods = {item["method"] for row in rows
               for item in (row.get("interval"), (row.get("ratio_to_plaintext") or {}).get("interval")) if item}
    notes = ["value: the median of the runs; max: the largest of all runs.",
             "runs, n: repetitions that count; samples: requests behind the quantiles; CV: of the runs' values (p50)."] if rows else []
    if any(row.get("pooled") for row in rows):
        notes.append("~ pooled: quantile of all runs' requests together, because single runs had too few; no interval.")
    if any(row.get("note", "").startswith("n/a") for row in rows):
        notes.append("n/a (n=…): too few requests for this quantile.")
    if any((item.get("path") or {}).get("verdict") != "proved" for cell in view.cells for item in cell.valid):
        notes.append(UNPROVED + "the path is not proved in every round: see Paths.")
    if "range" in methods:
        notes.append("range: the smallest and the largest run; the percentage is its true coverage of the median.")
    if "order statistics" in methods:
        notes.append("order: order statistics of the runs, with their exact coverage of the median.")
    notes += [f"t: Student's {name}." for name in sorted(methods) if numbers.method(name) == "t"]
    return notes + remarks(view.cells)


def remarks(cells):
    """What the summary notes about single values, beyond what the tables show themselves."""
    found = []
    for cell in cells:
        for row in cell.rows:
            for text in row.get("note", "").split("; "):
                if row["metric"] in ("latency", "throughput") and text and not text.startswith(("n/a", "largest of")):
                    found.append(f"{cell.id}: {text}.")
    return list(dict.fromkeys(found))


def _titled(*parts):
    return ", ".join(part for part in parts if part)


def latency_grids(view):
    """Per payload: the values; then interval and ratio to plaintext of each."""
    grids = []
    for scenario, _ in view.scenarios():
        cells = [cell for cell in view.cells if cell.scenario == scenario and shape_of(cell) != "stream"]
        for text, group in variants(cells, "payload_bytes"):
            payloads = {cell.factors.get("payload_bytes") or 0 for cell in group}
            for payload in sorted(payloads):
                here = [cell for cell in group if (cell.factors.get("payload_bytes") or 0) == payload]
                grids += _latency(view, here, _titled(f"Latency, {numbers.size(payload)} request", text))
    return grids


def _latency(view, cells, title):
    def quantiles(cell):
        return [cell.row("latency", quantile) for quantile, _ in QUANTILES]

    def values(own):
        found = quantiles(own[0])
        if not any(found):
            return own[0].why_empty()
        samples = max(row.get("samples", 0) for row in found if row)
        return [value(row) for row in found] + [runs(own[0]), str(samples), cv(found[0])]

    rows = [row for cell in cells for row in quantiles(cell) if row]
    unit = next((numbers.scale_of(row["unit"])[0] for row in rows), "µs")
    basis = " and ".join(sorted({row["basis"] for row in rows if row.get("basis")})) or "sent"
    heads = [name for _, name in QUANTILES] + ["runs", "samples", "CV"]

    def spread(cell):
        return [(name, row) for (_, name), row in zip(WITH_INTERVAL, quantiles(cell))]

    return [
        Grid(f"{title}: round trip from {basis} to done, {unit}", "transport", heads, rows_of(view, cells, values)),
        Grid(f"{title}: intervals over runs, {unit}", "quantile", SPREAD, spread_rows(view, cells, spread)),
    ]


def throughput_grids(view):
    """Transports by stream counts; then interval and ratio to plaintext of each."""
    grids = []
    for scenario, _ in view.scenarios():
        cells = [cell for cell in view.cells if cell.scenario == scenario and shape_of(cell) == "stream"]
        for text, group in variants(cells, "streams"):
            grids += _throughput(view, group, _titled("Throughput", text))
    return grids


def _throughput(view, cells, title):
    cells = sorted(cells, key=lambda cell: cell.factors.get("streams", 1))
    counts = list(dict.fromkeys(cell.factors.get("streams", 1) for cell in cells))

    def values(own):
        if not any(cell.row("throughput") for cell in own):
            return own[0].why_empty()
        found = {cell.factors.get("streams", 1): cell for cell in own}
        return [one(found[count]) if count in found else "–" for count in counts]

    def one(cell):
        row = cell.row("throughput")
        return f"{value(row)}  n={runs(cell)}" if row else cell.why_empty()

    rows = [row for cell in cells for row in [cell.row("throughput")] if row]
    unit = next((numbers.scale_of(row["unit"])[0] for row in rows), "Gbit/s")
    basis = " and ".join(sorted({row["basis"] for row in rows if row.get("basis")})) or "received"

    def spread(cell):
        return [(cell_text(cell), cell.row("throughput"))]

    return [
        Grid(f"{title}: authenticated bytes {basis}, {unit}, n runs", "transport",
             ["1 stream" if count == 1 else f"{count} streams" for count in counts], rows_of(view, cells, values)),
        Grid(f"{title}: intervals over runs, {unit}", "streams", SPREAD, spread_rows(view, cells, spread)),
    ]
