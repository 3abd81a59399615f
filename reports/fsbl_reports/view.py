"""A result as the tables ask for it: transports in families, cells with their rows and rounds."""
import dataclasses
import re

from fsbl_reports import numbers

FAMILIES = (  # the source documents' column groups, in their order
    ("plaintext", "Plaintext"),
    ("wireguard", "WireGuard"),
    ("mtls-software", "mTLS, software"),
    ("mtls-offloaded", "mTLS, offloaded"),
    ("other", "Other"),
)
ALWAYS_SHOWN = 4  # the families above that keep a heading even when the scenario has none of them

# Factors that follow from the transport, and so never tell two tables apart; and those of its session, which tell two
# rows of one table apart when they are swept.
OF_TRANSPORT = {"transport", "tunnel", "session", "engine"}
OF_SESSION = {"cipher", "group", "key"}


def is_session_factor(key):
    return key in OF_SESSION or key.startswith(("tls.", "crypto.", "placement.crypto_"))


@dataclasses.dataclass
class Transport:
    name: str
    label: str
    family: str
    reason: str = ""
    fix: str = ""


@dataclasses.dataclass
class Cell:
    id: str
    scenario: str
    transport: Transport
    factors: dict
    config: dict
    rounds: list
    rows: list
    label: str = ""  # the transport's, and what of its session was swept

    def row(self, metric, quantile=None, side=None):
        """The summary row; of several bases the one that counts from the intended time."""
        found = [row for row in self.rows if row["metric"] == metric and row.get("quantile") == quantile
                 and side in (None, row.get("side"))]
        return min(found, key=lambda row: row.get("basis") != "intended") if found else None

    def with_status(self, status):
        return [item for item in self.rounds if item["validity"].get("status") == status]

    @property
    def valid(self):
        return self.with_status("valid")

    def why_empty(self):
        """Why this cell has no value: its transport can't run here, or its rounds don't count."""
        if not self.rounds:
            return "not measured: " + (self.transport.reason or "no round was run")
        if self.valid:
            return "no such reading in its rounds"
        codes = []
        for item in self.rounds:
            for flag in item["validity"].get("flags", []):
                if flag.get("invalidates", True) and flag["code"] not in codes:
                    codes.append(flag["code"])
        count = len(self.rounds)
        return f"no valid round of {count}: {', '.join(codes) or 'no reason given'}"


def family_of(text):
    """The family that a result names, whatever the order and case of its words: "software mTLS" is mtls-software."""
    words = sorted(re.findall(r"[a-z]+", text.lower()))
    return next((family for family, _ in FAMILIES if sorted(family.split("-")) == words), "other")


class View:
    def __init__(self, result):
        self.result = result
        self.transports = self._transports(result["transports"])
        by_name = {item.name: item for item in self.transports}
        rows, rounds = {}, {}
        for row in result["summary"]:
            rows.setdefault(row["cell"], []).append(row)
        for item in result["rounds"]:
            rounds.setdefault(item["cell"], []).append(item)
        self.cells = []
        for cell in result["cells"]:
            name = cell["factors"].get("transport", "")
            if name not in by_name:
                by_name[name] = Transport(name, name, "other")
                self.transports.append(by_name[name])
            self.cells.append(Cell(cell["id"], cell["scenario"], by_name[name], cell["factors"], cell.get("config", {}),
                                   rounds.get(cell["id"], []), rows.get(cell["id"], [])))
        self._label_cells()
        order = [family for family, _ in FAMILIES]
        self.transports.sort(key=lambda item: order.index(item.family))  # stable: the plan's order inside a family

    @staticmethod
    def _transports(items):
        """One per name: a transport that one scenario measured is measured."""
        found = {}
        for item in items:
            measured = item.get("status") == "measured"
            transport = Transport(item["name"], item["label"] or item["name"], family_of(item["family"]),
                                  "" if measured else item.get("reason") or "no reason given", item.get("fix", ""))
            if item["name"] not in found or measured:
                found[item["name"]] = transport
        return list(found.values())

    def _label_cells(self):
        for cell in self.cells:
            twins = [other for other in self.cells
                     if other.scenario == cell.scenario and other.transport is cell.transport]
            parts = [str(value) if key in OF_SESSION else f"{key} {value}" for key, value in cell.factors.items()
                     if is_session_factor(key) and key in swept_keys(twins)]
            cell.label = ", ".join([cell.transport.label] + parts)

    def lines(self, cells):
        """[(transport, label, its cells)]: the rows that these cells make, in the order of the families."""
        found = {}
        for transport in self.transports:
            for cell in cells:
                if cell.transport is transport:
                    found.setdefault(cell.label, (transport, cell.label, []))[2].append(cell)
        return list(found.values())

    def scenarios(self):
        """(id, title) in the order of the plan."""
        titles = {item.get("id"): item.get("title", "") for item in self.result["scenarios"]}
        ids = dict.fromkeys([*titles, *(cell.scenario for cell in self.cells)])
        return [(name, titles.get(name, "")) for name in ids]

    def unmeasured(self):
        return [item for item in self.transports if item.reason]


def shape_of(cell):
    return "stream" if "stream" in str(cell.factors.get("shape", "")) else "request-response"


def swept_keys(cells):
    """Factors with more than one value among the cells that have them."""
    values = {}
    for cell in cells:
        for key, value in cell.factors.items():
            values.setdefault(key, set()).add(repr(value))
    return [key for key, found in values.items() if len(found) > 1]


def variants(cells, axis):
    """[(text, cells)]: the cells of one scenario, one group per combination of swept keys other than the transport's and
    the table's own axis. The text names the keys that differ, e.g. "mtu 9000, direction down"."""
    swept = [key for key in swept_keys(cells) if key not in OF_TRANSPORT and key != axis and not is_session_factor(key)]
    groups = {}
    for cell in cells:
        text = ", ".join(f"{key} {cell.factors[key]}" for key in swept if cell.factors.get(key) not in (None, ""))
        groups.setdefault(text, []).append(cell)
    return list(groups.items())


def cell_text(cell):
    """What tells a transport's cells apart in the details: its place on the table's axis."""
    if shape_of(cell) == "stream":
        count = cell.factors.get("streams", 1)
        return "1 stream" if count == 1 else f"{count} streams"
    return numbers.size(cell.factors.get("payload_bytes", 0)) + " request"


def by_family(view, transports):
    """[(heading, transports or empty)] in the documents' order."""
    groups = []
    for i, (family, heading) in enumerate(FAMILIES):
        members = [item for item in view.transports if item.family == family and item.name in transports]
        if members or i < ALWAYS_SHOWN:
            groups.append((heading, members))
    return groups
