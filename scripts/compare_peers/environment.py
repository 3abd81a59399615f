"""Under what conditions the pairs were measured: the lines below the table, `environment` of the JSON."""
import os
import platform
import re

from . import identity, peers, processes, statistics
from .errors import Missing, ToolError

VERSIONS = {"iperf3": ["iperf3", "--version"], "sockperf": ["sockperf", "--version"], "openssl": ["openssl", "version"],
            "iproute2": ["ip", "-V"]}


def first_line(argv):
    """The first line that a program says of itself; whatever its exit code, or where it says it."""
    try:
        with processes.Child(argv) as child:
            out, err = child.popen.communicate(timeout=20)
    except Missing as error:
        return f"missing: {error}"
    except (ToolError, processes.subprocess.TimeoutExpired) as error:
        return f"missing: {error}"
    lines = [line.strip() for line in (out + err).splitlines() if line.strip()]
    return re.sub(r"\x1b\[[0-9;]*m", "", lines[0]) if lines else "missing: it said nothing"


def cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "unknown"


def environment(host):
    """Facts for a reader who wants to repeat it. Nothing here names the host."""
    options = host.options
    facts = {
        "kernel": platform.release(), "cpu": cpu_model(), "cpus": os.cpu_count(),
        "cores": {"client": host.cpus["client"][0], "server": host.cpus["server"][0]},
        "load_average": options.load_average,  # before the first block
        "testbed": "two network namespaces, one veth pair", "user": "ordinary" if options.rootless else "root",
        "blocks": options.blocks, "seed": options.seed, "warm_up_s": options.warm_up, "measure_s": options.measure,
        "trial": options.trial,
        "write_bytes": 65536, "ping_pong_bytes": 64,
        "socket_buffers": "the kernel's autotuning, on both sides of a pair",
        "versions": {name: first_line(argv) for name, argv in VERSIONS.items()},
    }
    try:
        facts["versions"]["fsbl"] = first_line([host.program("fsbl-worker"), "--version"])
    except Missing as error:
        facts["versions"]["fsbl"] = f"missing: {error}"
    if host.engine_cases:
        facts["engine_cases"] = host.engine_cases
    for testbed in list(host.testbeds.values())[:1]:
        names = {"congestion_control": "net.ipv4.tcp_congestion_control", "tcp_rmem": "net.ipv4.tcp_rmem",
                 "tcp_wmem": "net.ipv4.tcp_wmem"}
        facts.update({key: testbed.sysctl("client", name) for key, name in names.items()})
        facts["offloads"] = testbed.offloads()
    return facts


def handshake_facts(host):
    """What a handshake costs the client's core in each tool, and what OpenSSL's own primitives would allow."""
    details = {name: statistics.geometric_mean(found) for name, found in host.handshake_details.items()
               if found and all(value > 0 for value in found)}
    facts = {"client_cpu_us": details, "at_a_time": host.options.at_a_time, "key": "P-256", "group": "X25519",
             "cipher": "TLS_AES_256_GCM_SHA384", "server": "openssl s_server, one connection at a time each",
             "subject_alternative_name": identity.spiffe_id("<role>")}
    try:
        facts["speed"] = peers.openssl_speed(host.cpus, host.options.measure / 2)
        facts["primitives_us"] = primitives_us(facts["speed"])
    except (Missing, ToolError) as error:
        facts["speed"] = f"missing: {error}"
    return facts


# What one side of one full mutual handshake must compute (RFC 8446): its own CertificateVerify; the peer's, and the
# authority's signature on the peer's certificate; an X25519 key and the shared secret (`openssl speed` has no figure
# for the key alone; it is about as much work).
SIGNS, VERIFIES, X25519S = 1, 2, 2


def primitives_us(speed):
    """Time of those primitives on one side, in µs."""
    return 1e6 * (SIGNS / speed["sign_per_s"] + VERIFIES / speed["verify_per_s"] + X25519S / speed["x25519_per_s"])
