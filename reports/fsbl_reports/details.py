"""What stands around the two tables: where and how, paths, work, cost, what is missing, what didn't run."""
import statistics

from fsbl_reports import numbers
from fsbl_reports.grid import Grid, Row
from fsbl_reports.tables import interval, value
from fsbl_reports.view import cell_text, shape_of, variants

SIDES = ("client", "server")
CPU_FACTS = (("cores", "cores"), ("threads_per_core", "threads per core"), ("numa_nodes", "NUMA nodes"),
             ("governor", "governor"), ("smt", "SMT"), ("max_mhz", "MHz at most"))
ELSEWHERE = {"latency", "throughput", "requests_per_s", "cpu_ns_per_byte", "retransmits"}  # have their own tables
PHASES = (("warm-up", "warm_up_ns"), ("measure", "measure_ns"), ("cool-down", "cool_down_ns"), ("extended up to", "max_duration_ns"))
DIRECTIONS = {"up": "up (client to server)", "down": "down (server to client)"}


def dig(item, *keys, default=None):
    """A nested field; the default where any step is absent."""
    for key in keys:
        if not isinstance(item, dict) or item.get(key) is None:
            return default
        item = item[key]
    return item


def _clock(text):
    return text.replace("T", " ").replace(".000Z", "Z")


def head(view):
    """The run in a few lines."""
    result = view.result
    run, testbed = result["run"], result["testbed"]
    commit = run.get("harness_commit") or "unknown"
    facts = [
        f"Run {run.get('id', 'without id')}: scope {run.get('scope', 'not stated')}, profile "
        f"{run.get('profile') or 'full'}, seed {run.get('seed', 'not stated')}",
        f"From {_clock(run.get('started_at', '?'))} to {_clock(run.get('ended_at', '?'))}, fsbl "
        f"{run.get('version', '?')}, commit {commit[:12]} ({'dirty' if run.get('dirty') else 'clean'})",
    ]
    if run.get("complete") is False:
        facts.append("INCOMPLETE: the run ended early; only what it finished is shown")
    emulated = f", emulated: {testbed['emulated']}" if testbed.get("emulated") else ""
    kind = testbed.get("kind", "?")
    facts.append(f"Testbed {testbed.get('id') or kind}" + (f", kind {kind}" if testbed.get("id") != kind else "") + emulated)
    hosts = {}
    for host in testbed.get("hosts", []):
        hosts.setdefault(host.get("environment_digest", "no digest"), []).append(host)
    for digest, same in hosts.items():
        roles = ", ".join(host.get("role", "?") for host in same)
        facts += [f"{roles}: {line}" for line in _environment(same[0].get("environment", {}))]
        facts.append(f"{roles}: environment {digest}")
    return facts


def _environment(environment):
    """Two lines: the CPU, then the system. A fact that could not be read is text that says so."""
    cpu = environment.get("cpu", {})
    if not isinstance(cpu, dict):
        cpu = {"model": str(cpu)}
    parts = [str(cpu.get("model", "CPU not stated"))]
    parts += [f"{name} {cpu[key]}" for key, name in CPU_FACTS if cpu.get(key) not in (None, "")]
    memory = environment.get("memory_bytes")
    parts += [f"{memory / (1 << 30):.0f} GiB"] if isinstance(memory, (int, float)) else []
    system = [f"kernel {dig(environment, 'kernel', 'release', default='not stated')}", environment.get("os")]
    system += [f"{key.replace('_', ' ')} {environment[key]}" for key in ("container", "virtual_machine", "clocksource")
               if environment.get(key)]
    system += [f"OpenSSL {dig(environment, 'libraries', 'openssl')}"] if dig(environment, "libraries", "openssl") else []
    return [", ".join(parts), ", ".join(str(part) for part in system if part)]


def _distinct(values):
    return list(dict.fromkeys(text for text in values if text))


def conditions(view):
    """What was set for every cell, each fact once; facts that differ are all named."""
    cells = [cell for cell in view.cells if cell.rounds]

    def of_cells(make):
        return "; ".join(_distinct(make(cell) for cell in cells)) or "not stated"

    def of_rounds(make):
        return "; ".join(_distinct(make(item) for cell in cells for item in cell.rounds)) or "not stated"

    def cpus(cell):
        place = cell.config.get("placement") or {}
        return ", ".join(f"{role.replace('_', ' of ')} on CPU {', '.join(map(str, place[role]))}"
                         for role in (*SIDES, "tunnel", "crypto_client", "crypto_server") if place.get(role))

    def phases(cell):
        times = cell.config.get("phases") or {}
        return ", ".join(f"{name} {numbers.seconds(times[key])}" for name, key in PHASES if times.get(key))

    def offloads(item):
        found = {side: dig(item, "details", side, "offloads") for side in SIDES}
        texts = {side: ", ".join(f"{name} {_on(state)}" for name, state in sorted(found[side].items()))
                 for side in SIDES if isinstance(found[side], dict)}
        if len(set(texts.values())) == 1 and len(texts) == 2:
            return f"both sides {texts['client']}"
        return ", ".join(f"{side} {text}" for side, text in texts.items())

    def congestion(item):
        sockets = [dig(item, "details", side, "reading", "tcp", default=[]) for side in SIDES]
        found = [dig(one, "congestion") for some in sockets if isinstance(some, list) for one in some]
        return ", ".join(f"{name} (paced by a timer, which can cost a fast sender more than its bytes do)"
                         if name == "bbr" else name for name in _distinct(found))

    def stamps(item):
        for series in item.get("series", []):
            if series.get("metric") == "latency":
                return (f"{series.get('source', '?')}, {series.get('clock', 'clock not stated')}, from "
                        f"\"{series.get('from', '?')}\" to \"{series.get('to', '?')}\"")
        return ""

    def cost(item):
        return str(dig(item, "details", "probe_cost", default=""))

    def loop(item):
        found = {series.get("basis") for series in item.get("series", []) if series.get("metric") == "latency"}
        if not found:
            return ""
        return "open loop" if "intended" in found else "closed loop: the achieved rate is what came out, none was offered"

    probes = of_rounds(cost)
    lines = [
        f"MTU: {of_cells(lambda cell: str(cell.factors.get('mtu', '')))}",
        f"Address family: {of_cells(lambda cell: 'IPv' + str(cell.factors['ip']).lstrip('v') if 'ip' in cell.factors else '')}",
        f"Offloads: {of_rounds(offloads)}",
        f"Congestion control: {of_rounds(congestion)}",
        f"Placement: {of_cells(cpus)}",
        f"Wait mode: {of_cells(lambda cell: str(cell.factors.get('wait', '')))}",
        f"Direction: {of_cells(lambda cell: DIRECTIONS.get(cell.factors.get('direction'), ''))}",
        f"Phases: {of_cells(phases)}",
        f"Load: {of_rounds(loop)}",
        f"Time stamps: {of_rounds(stamps)}",
        f"Probe cost: {'not measured in this run' if probes == 'not stated' else probes}",
    ]
    return [line for line in lines if not line.endswith(": not stated")]  # what these shapes don't have


def _on(state):
    return {True: "on", False: "off"}.get(state, str(state))


def paths(view):
    """Per transport: the verdict, its witnesses, what was negotiated; every layer that is not proved."""
    lines = []
    for transport in view.transports:
        rounds = [item for cell in view.cells if cell.transport is transport for item in cell.rounds]
        if not rounds:
            continue
        verdicts = [dig(item, "path", "verdict", default="unproven") for item in rounds]
        counts = ", ".join(f"{name} in {verdicts.count(name)} of {len(rounds)} rounds"
                           for name in ("contradicted", "unproven", "proved") if name in verdicts)
        layers = [layer for item in rounds for layer in dig(item, "path", "layers", default=[])]
        witnesses = _distinct(_witness(layer) for layer in layers)
        negotiated = _distinct(", ".join(str(text) for text in dig(item, "details", side, "negotiated", default={}).values())
                               for item in rounds for side in SIDES)
        line = f"{transport.label}: path {counts}"
        line += f"; {'; '.join(negotiated)}" if negotiated else ""
        line += f"; witnesses: {', '.join(witnesses)}" if witnesses else "; no witness"
        lines.append(line)
        lines += _distinct(f"{transport.label}, {layer.get('layer', '?')}, {layer.get('side', '?')}: claimed "
                           f"\"{layer.get('claimed', '')}\", seen \"{layer.get('witnessed', '')}\""
                           for layer in layers if layer.get("verdict") != "proved")
    return lines


def _witness(layer):
    sources = _distinct(item.get("source") for item in layer.get("evidence", []))
    device = f", {layer['device_class']}" if layer.get("device_class") else ""
    return f"{layer.get('layer', '?')} by {' and '.join(sources) or 'its own word'} ({layer.get('kind', '?')}{device})"


def per_cell(view, heads, fill, title):
    """One grid per scenario: transports as headings, their cells as rows."""
    grids = []
    for scenario, _ in view.scenarios():
        cells = [cell for cell in view.cells if cell.scenario == scenario]
        if not cells:
            continue
        axis = "streams" if shape_of(cells[0]) == "stream" else "payload_bytes"
        variant = {cell.id: text for text, group in variants(cells, axis) for cell in group}
        rows = []
        for transport, heading, own in view.lines(cells):
            own = [cell for cell in own if cell.rounds or not transport.reason]  # the tables have said why
            rows += [Row(heading, group=True)] if own else []
            for cell in own:
                label = ", ".join(part for part in (cell_text(cell), variant[cell.id]) if part)
                rows.append(Row(label, fill(cell)) if cell.rounds else Row(label, span=cell.why_empty()))
        grids.append(Grid(f"{title}, {scenario}", "cell", heads, rows))
    return grids


def work_grids(view):
    """Conservation and errors, all rounds together."""
    def fill(cell):
        def total(*keys):
            return sum(dig(item, *keys, default=0) for item in cell.rounds)

        refused = sum(sum(dig(item, "attempts", "refused_by_reason", default={}).values()) for item in cell.rounds)
        counts = [total("accounting", key) for key in ("planned", "done", "failed", "outstanding_at_end", "unsent")]
        counts += [f"{total('attempts', 'accepted')} of {total('attempts', 'planned')}", refused]
        return [str(item) for item in counts] + [value(cell.row("retransmits", side="client")),
                                                 "–" if shape_of(cell) == "stream" else value(cell.row("requests_per_s"))]
    heads = ["planned", "done", "failed", "at end", "unsent", "connected", "refused", "retransm.", "achieved/s"]
    return per_cell(view, heads, fill, "Work (sums over rounds; retransmits and rate: median of runs)")


def cost_grids(view):
    """CPU per byte with its interval, and what the hypervisor took."""
    def steal(cell, side):
        shares = [dig(item, "details", side, "cpu", "steal_ns") / dig(item, "details", side, "window_ns")
                  for item in cell.rounds
                  if dig(item, "details", side, "cpu", "steal_ns") is not None and dig(item, "details", side, "window_ns")]
        return f"{statistics.median(shares) * 100:.2f} %" if shares else "n/a"

    def fill(cell):
        cpu = [cell.row("cpu_ns_per_byte", side=side) for side in SIDES]
        return [value(cpu[0]), value(cpu[1]), interval(cpu[0]), interval(cpu[1]), steal(cell, "client"),
                steal(cell, "server")]
    heads = ["client", "server", "client interval", "server interval", "steal client", "steal server"]
    return per_cell(view, heads, fill, "CPU, ns per byte (median of runs), and steal in % of the window")


def other_grids(view):
    """Every other reading that the summary holds, whatever its name: a row each, the transport's cells as columns."""
    grids = []
    for scenario, _ in view.scenarios():
        cells = [cell for cell in view.cells if cell.scenario == scenario]
        rows, heads = [], list(dict.fromkeys(cell_text(cell) for cell in cells))
        for _, heading, own in view.lines(cells):
            found = {}
            for cell in own:
                for row in cell.rows:
                    if row["metric"] not in ELSEWHERE:
                        name = " ".join(part for part in (row["metric"], row.get("side"), row.get("basis")) if part)
                        quantile = f" p{row['quantile'] * 100:g}" if row.get("quantile") is not None else ""
                        unit = numbers.scale_of(row.get("unit", ""))[0]
                        key = f"{name}{quantile}" + (f", {unit}" if unit not in ("", "1") else "")
                        found.setdefault(key, {}).setdefault(cell_text(cell), []).append(value(row))
            rows += [Row(heading, group=True)] if found else []
            rows += [Row(key, [" / ".join(by_cell.get(head, ["–"])) for head in heads]) for key, by_cell in found.items()]
        if rows:
            grids.append(Grid(f"Other readings (median of runs), {scenario}", "reading", heads, rows))
    return grids


def invalid_rounds(view):
    """Each round that doesn't count, with the flags that say why; then what was only noted."""
    lines, noted = [], {}
    for cell in view.cells:
        for item in cell.rounds:
            flags = item["validity"].get("flags", [])
            if item["validity"].get("status") != "valid":
                why = "; ".join(_flag(flag) for flag in flags) or "no reason given"
                lines.append(f"{cell.id}, block {item.get('block', '?')}: {item['validity'].get('status')}: {why}")
                continue
            for flag in flags:
                noted.setdefault(_flag(flag), []).append(cell.id)
    for text, ids in noted.items():
        lines.append(f"noted, still valid: {text}, in {len(ids)} round{'s' if len(ids) > 1 else ''} of {', '.join(_distinct(ids))}")
    return lines


def _flag(flag):
    text = flag["code"]
    if flag.get("value") is not None:
        text += f" {flag['value']}"
    return text + (f" (limit {flag['limit']})" if flag.get("limit") is not None else "")


def missing(view):
    """Readings that the host couldn't give, with reason and extent."""
    found, total = {}, 0
    for cell in view.cells:
        for item in cell.rounds:
            total += 1
            seen = {}
            for lack in item.get("missing", []):
                key = (lack.get("name", "?"), lack.get("reason", "no reason given"))
                seen.setdefault(key, []).append(lack.get("side"))
            for key, sides in seen.items():
                entry = found.setdefault(key, [0, {}])
                entry[0] += 1
                entry[1].update(dict.fromkeys(side for side in sides if side))
    return [f"{name}{' (' + ', '.join(sides) + ')' if sides else ''}: {reason}; {count} of {total} rounds"
            for (name, reason), (count, sides) in found.items()]


def unmeasured(view):
    return [f"{item.label} ({item.name}): {item.reason}" + (f"; {item.fix}" if item.fix else "")
            for item in view.unmeasured()]
