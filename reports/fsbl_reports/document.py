"""The report as sections, and its two forms: Markdown (everything) and text for a terminal (the brief sections)."""
import dataclasses
import textwrap

from fsbl_reports import details, grid, tables
from fsbl_reports.view import View


@dataclasses.dataclass
class Section:
    heading: str
    blocks: list          # Grid, or a list of lines
    brief: bool = True    # also on the terminal


def document(result):
    view = View(result)
    sections = [
        Section("", [details.head(view)]),
        Section("Latency percentiles (round trip)", tables.latency_grids(view)),
        Section("Throughput", tables.throughput_grids(view)),
        Section("Reading the tables", [tables.legend(view)]),
        Section("Paths", [details.paths(view)]),
        Section("Conditions", [details.conditions(view)]),
        Section("Work and errors", details.work_grids(view), brief=False),
        Section("CPU", details.cost_grids(view), brief=False),
        Section("Other readings", details.other_grids(view), brief=False),
        Section("Rounds that don't count", [details.invalid_rounds(view)]),
        Section("Missing", [details.missing(view)]),
        Section("Not measured", [details.unmeasured(view)]),
    ]
    return [section for section in sections if any(section.blocks)]


def markdown(result):
    parts = ["# FSBL results"]
    for section in document(result):
        parts += [f"## {section.heading}"] if section.heading else []
        for block in section.blocks:
            parts.append(grid.markdown(block) if isinstance(block, grid.Grid) else
                         "\n".join("- " + grid.escape(line) for line in block))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def text(result):
    parts = []
    for section in document(result):
        if not section.brief:
            continue
        parts += [f"{section.heading}\n{'=' * len(section.heading)}"] if section.heading else []
        for block in section.blocks:
            if isinstance(block, grid.Grid):
                parts.append(grid.text(block))
            else:
                parts.append("\n".join(textwrap.fill(" ".join(line.split()), grid.WIDTH, subsequent_indent="  ",
                                                     break_on_hyphens=False) for line in block))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"
