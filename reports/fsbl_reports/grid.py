"""A table with rows in groups, as Markdown or as text of at most 100 columns."""
import dataclasses
import textwrap

WIDTH = 100
MAX_LABEL = 52  # a transport and a cipher's name
GAP = "  "


@dataclasses.dataclass
class Row:
    label: str
    cells: list = dataclasses.field(default_factory=list)
    span: str = ""       # instead of cells: why there are none
    group: bool = False  # a heading of the rows below it


@dataclasses.dataclass
class Grid:
    title: str
    label: str
    columns: list
    rows: list


def cut(text, width):
    return text if len(text) <= width else text[:width - 1] + "…"


def escape(text):
    """A Markdown cell: one line, no column bars, nothing that begins a tag."""
    return " ".join(str(text).split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def markdown(grid):
    lines = [f"**{escape(grid.title)}**", ""] if grid.title else []
    lines.append("| " + " | ".join(escape(text) for text in [grid.label] + grid.columns) + " |")
    lines.append("|---|" + "---:|" * len(grid.columns))
    for row in grid.rows:
        cells = list(row.cells)
        if row.span or row.group:
            cells = [row.span] + [""] * (len(grid.columns) - 1)
        label = f"**{escape(row.label)}**" if row.group else escape(row.label)
        lines.append("| " + " | ".join([label] + [escape(cell) for cell in cells]) + " |")
    return "\n".join(lines) + "\n"


def _bands(widths, label_width):
    """Column indices, cut into as many tables as the width asks for."""
    bands, used = [[]], label_width
    for i, width in enumerate(widths):
        if bands[-1] and used + len(GAP) + width > WIDTH:
            bands.append([])
            used = label_width
        bands[-1].append(i)
        used += len(GAP) + width
    return bands


def _with_cells(rows):
    """Rows with cells and the headings above them: a reason is said once."""
    kept = []
    for row in reversed(rows):
        if row.cells or (row.group and kept and not kept[-1].group):
            kept.append(row)
    return kept[::-1]


def _text_row(row, label_width, band, widths):
    if row.group and not row.span:
        return [cut(row.label, WIDTH)]
    label = cut(row.label if row.group else "  " + row.label, label_width)
    if row.span:
        wrapped = textwrap.wrap(row.span, WIDTH - label_width - len(GAP)) or [""]
        first = label.ljust(label_width) + GAP + wrapped[0]
        return [first] + [" " * label_width + GAP + more for more in wrapped[1:]]
    cells = [cut(row.cells[i], widths[i]).rjust(widths[i]) for i in band]
    return [(label.ljust(label_width) + GAP + GAP.join(cells)).rstrip()]


def text(grid):
    labels = [grid.label] + [("" if row.group else "  ") + row.label for row in grid.rows if row.cells or row.span]
    label_width = min(max(map(len, labels)), MAX_LABEL)
    room = WIDTH - label_width - len(GAP)
    widths = []
    for i, head in enumerate(grid.columns):
        cells = [row.cells[i] for row in grid.rows if not row.span and not row.group]
        widths.append(min(max(map(len, cells + [head])), room))
    lines = textwrap.wrap(grid.title, WIDTH) if grid.title else []
    for number, band in enumerate(_bands(widths, label_width)):
        if number > 0:
            lines.append("")
        heads = [cut(grid.columns[i], widths[i]).rjust(widths[i]) for i in band]
        lines.append(cut(grid.label, label_width).ljust(label_width) + GAP + GAP.join(heads))
        for row in grid.rows if number == 0 else _with_cells(grid.rows):
            lines += _text_row(row, label_width, band, widths)
    return "\n".join(line.rstrip() for line in lines) + "\n"
