"""The table and the lines below it, 100 columns wide at most; and the JSON."""
import json
import textwrap

WIDTH = 100
HEADINGS = ("pair", "MTU", "fsbl", "peer", "unit", "ratio", "interval", "n", "bar", "met")
LEFT = {0, 4, 8, 9}  # columns that are text


def number(value):
    """Three or four digits that matter."""
    if value is None:
        return "-"
    digits = next((digits for least, digits in ((1000, 0), (100, 1), (10, 2)) if abs(value) >= least), 3)
    return f"{value:.{digits}f}"


def ratio_text(value):
    """Three digits after the point, but no more than three or four in all."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 10 else f"{value:.3f}"


def interval_text(interval):
    if interval["lo"] is None or interval["hi"] is None:
        return "no bounds"
    return f"{ratio_text(interval['lo'])}..{ratio_text(interval['hi'])}"


def row(result):
    return (result["name"], "-" if result["mtu"] is None else str(result["mtu"]), number(result["fsbl"]),
            number(result["peer"]), result["unit"], ratio_text(result["ratio"]), interval_text(result["interval"]),
            str(result["n"]), result["bar"] or "-", result["met"] or "-")


def table(results):
    """Aligned lines, one blank between columns."""
    rows = [HEADINGS] + [row(result) for result in results]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEADINGS))]
    lines = []
    for cells in rows:
        padded = [cells[i].ljust(width) if i in LEFT else cells[i].rjust(width) for i, width in enumerate(widths)]
        lines.append(" ".join(padded).rstrip())
    return lines


def wrapped(text, indent="  "):
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def aim_lines(results):
    said = [f"{result['name']} {result['aim']:g}: {result['aim_met']}" for result in results
            if result.get("aim") is not None]
    return wrapped("aims: " + "; ".join(said)) if said else []


def explanations(results):
    names = {result["name"] for result in results}
    lines = wrapped("ratio: above 1 is better for fsbl in every line (fsbl / peer of rates, peer / fsbl of times). "
                    "Values are geometric means over n blocks; every block measures each member once, in an order "
                    "drawn from the seed; interval: 95 %, " + results[0]["interval"]["method"] + ". bar: '>=b' is met "
                    "when the whole interval is at or above b, 'not<b' unless the whole interval is below b.")
    lines += aim_lines(results)
    if any(name.startswith("rr64") for name in names):
        lines += wrapped("rr64: p50 of full round trips of 64 B each way over TCP, one connection. busy: both sides of "
                         "both tools spin on non-blocking sockets; block: they wait in recv().")
    if any("stream/" in name for name in names):
        lines += wrapped("stream: one connection, 64 KiB writes, client to server; Gbit/s that the receiving "
                         "application got inside the window (iperf3: its server's own intervals there).")
    if "protection-cost/mtls-dpdk" in names:
        lines += wrapped("protection-cost: (1/T_mtls - 1/T_plaintext) / (1/T_mtls-dpdk - 1/T_plaintext) in the blocks "
                         "of the streams at MTU 9000; fsbl is what mtls-dpdk adds to a byte, peer what mtls adds; "
                         "interval: Fieller's theorem on paired differences.")
    for result in results:
        if result.get("note"):
            lines += wrapped(f"{result['name']}: {result['note']}.")
    return lines


def handshake_lines(facts, results):
    if not facts:
        return []
    k = facts["at_a_time"]
    lines = wrapped(f"handshake: TLS 1.3, {facts['cipher']}, P-256 certificates on both sides, X25519, no tickets; "
                    f"connect, full handshake, close. s_time: one after another; fsbl: {k} at a time from one thread, "
                    f"to {k} s_servers on one core (an s_server serves one connection after another); at-once: {k} "
                    "s_times on one core to the same servers. fsbl counts a handshake when the server's close_notify "
                    "has come, s_time when its own part is sent.")
    costs = ", ".join(f"{name} {value:.0f} us" for name, value in facts["client_cpu_us"].items())
    lines += wrapped(f"handshake, CPU of the client's core each: {costs}.")
    if not isinstance(facts["speed"], dict):
        return lines + wrapped(f"handshake, openssl speed: {facts['speed']}")
    speed, limit = facts["speed"], 1e6 / facts["primitives_us"]
    shares = ", ".join(f"{name} {result[side] / limit:.0%}" for result in results for name, side in
                       ((("fsbl", "fsbl"), ("s_time", "peer")) if result["name"] == "handshake-mutual/s_time" else ()))
    lines += wrapped(f"handshake, by openssl speed on that core: one P-256 signature ({speed['sign_per_s']:.0f}/s), "
                     f"two verifications ({speed['verify_per_s']:.0f}/s: the peer's, its certificate's), two X25519 "
                     f"({speed['x25519_per_s']:.0f}/s) take {facts['primitives_us']:.0f} us a side, so at most "
                     f"{limit:.0f}/s; of that: {shares or 'not measured'}. The rest is OpenSSL outside its primitives, "
                     "the kernel, and the wait for the server.")
    return lines


def environment_lines(facts):
    on = [name for name, value in facts.get("offloads", {}).items() if value is True]
    versions = "; ".join(facts["versions"].values())
    lines = wrapped(f"where: {facts['testbed']}; client on core {facts['cores']['client']}, server on core "
                    f"{facts['cores']['server']} of {facts['cpus']}; {facts['cpu']}; Linux {facts['kernel']}; as "
                    f"{'root' if facts['user'] == 'root' else 'an ordinary user'}.")
    lines += wrapped(f"conditions: windows of {facts['measure_s']:g} s after {facts['warm_up_s']:g} s of warm-up, seed "
                     f"{facts['seed']}; congestion control {facts.get('congestion_control', '?')}; socket buffers: "
                     f"{facts['socket_buffers']}; offloads on: {', '.join(on) or 'none'}.")
    if "engine_cases" in facts:
        cases = ", ".join(f"{member} is {case}" for member, case in facts["engine_cases"].items())
        lines += wrapped("engine: plaintext bytes a second of fsbl-bench-engines on core "
                         f"{facts['cores']['client']}, no network; {cases}.")
    lines += wrapped(f"versions: {versions}.")
    if facts.get("congestion_control") == "bbr":
        lines += wrapped("note: bbr sends by a timer. Setting it can cost a fast sender more than its bytes do, which "
                         "holds plaintext back most; --congestion reno measures without it.")
    if facts["load_average"] > 0.5:
        lines += wrapped(f"warning: other programs were running (load average {facts['load_average']:.2f} at the "
                         "start): measure again on an idle machine before believing a ratio.")
    if facts["trial"]:
        lines += wrapped("warning: a trial (--trial): windows too short and blocks too few for any conclusion.")
    return lines


def text(found):
    results = found["pairs"] + found["derived"]
    lines = []
    if results:
        lines += table(results) + [""] + explanations(results)
        lines += handshake_lines(found["environment"].get("handshake"), results)
        lines += environment_lines(found["environment"])
    for reason in dict.fromkeys(item["reason"] for item in found["skipped"]):
        names = [item["name"] for item in found["skipped"] if item["reason"] == reason]
        lines += wrapped(f"skipped: {', '.join(names)}: {reason}")
    return "\n".join(lines) + "\n"


def as_json(found):
    return json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
