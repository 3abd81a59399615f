"""The other tools: how each is started as fsbl's counterpart, and what its output says. The parsers take text and are
tested on recorded output."""
import contextlib
import json
import math
import os
import re
import select
import subprocess
import time

from . import processes
from .errors import ToolError
from .namespaces import ADDRESSES

IPERF3_PORT, SOCKPERF_PORT = 5201, 11111
SERVER_NICE_END = 5.0  # seconds that a one-off server gets to end by itself


# --- iperf3 -----------------------------------------------------------------------------------------------------

def parse_iperf3(text, warm_up, measure):
    """Gbit/s at the receiver, from the JSON of the *server*: its intervals that lie inside the window. (With --omit,
    the totals still count bytes of the omitted time: iperf issue 236.)"""
    try:
        report = json.loads(text)
    except ValueError as error:
        raise ToolError(f"iperf3: its output is no JSON: {error}") from error
    if report.get("error"):
        raise ToolError(f"iperf3: {report['error']}")
    slack = 0.02
    try:
        sums = [interval["sum"] for interval in report["intervals"]]
        inside = [s for s in sums if s["start"] >= warm_up - slack and s["end"] <= warm_up + measure + slack]
        seconds = math.fsum(s["seconds"] for s in inside)
        received = math.fsum(s["bytes"] for s in inside)
    except (KeyError, TypeError) as error:
        raise ToolError(f"iperf3: its JSON lacks {error}") from error
    if seconds < 0.9 * measure or received <= 0:
        raise ToolError(f"iperf3: the server saw {seconds:.2f} s of the window's {measure:.2f} s, "
                        f"{received:.0f} bytes in it")
    return received * 8 / seconds / 1e9


def iperf3(testbed, cpus, warm_up, measure):
    """One stream of 64 KiB writes, receiver's Gbit/s."""
    length = max(1, math.ceil(warm_up + measure))
    step = str(math.gcd(round(warm_up * 100), round(measure * 100)) / 100)
    common = ["-p", str(IPERF3_PORT), "-i", step, "-J"]
    with processes.Child(["iperf3", "-s", "-1", "-B", ADDRESSES["server"], *common],
                         namespace=testbed.fds["server"], cpus=cpus["server"]) as server:
        processes.wait_for_listener(server, IPERF3_PORT)
        with processes.Child(["iperf3", "-c", ADDRESSES["server"], "-B", ADDRESSES["client"], "-l", "64K", "-t",
                              str(length), *common],
                             namespace=testbed.fds["client"], cpus=cpus["client"]) as client:
            client.finish(length + 20)
        text, _ = server.finish(SERVER_NICE_END)
    return parse_iperf3(text, warm_up, measure)


# --- sockperf ---------------------------------------------------------------------------------------------------

def parse_sockperf(text):
    """(p50 of full round trips in µs, observations)."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    if re.search(r"Summary: Latency", plain):
        raise ToolError("sockperf: printed halves of round trips; --full-rtt was not taken")
    if not re.search(r"Summary: Round trip is", plain):
        raise ToolError(f"sockperf: no summary: {processes.last_words(plain)}")
    lost = re.search(r"# dropped messages = (\d+); # duplicated messages = (\d+); # out-of-order messages = (\d+)",
                     plain)
    if lost and any(int(count) for count in lost.groups()):
        raise ToolError(f"sockperf: {lost[0].lstrip('# ')}")
    median = re.search(r"percentile 50\.0+ =\s*([0-9.]+)", plain)
    total = re.search(r"Total (\d+) observations", plain)
    if not median or not total or int(total[1]) < 1 or float(median[1]) <= 0:
        raise ToolError("sockperf: no median in its output")
    return float(median[1]), int(total[1])


SOCKPERF_EDGES = 0.45  # seconds that it leaves out of its run: 400 ms of warm-up, 50 ms at the end


def sockperf(testbed, cpus, wait, measure):
    """p50 of 64-byte TCP round trips in µs. wait busy: non-blocking sockets, which both sides then spin on; wait
    block: blocking ones, waited on in recvfrom()."""
    mode = ["--nonblocked"] if wait == "busy" else []
    length = max(1, math.ceil(measure + SOCKPERF_EDGES))
    common = ["--tcp", "-i", ADDRESSES["server"], "-p", str(SOCKPERF_PORT), *mode]
    with processes.Child(["sockperf", "server", *common], namespace=testbed.fds["server"], cpus=cpus["server"],
                         stdout=subprocess.DEVNULL, stderr=processes.LOG) as server:
        processes.wait_for_listener(server, SOCKPERF_PORT)
        text = processes.run(["sockperf", "ping-pong", *common, "-m", "64", "-t", str(length), "--full-rtt"],
                             namespace=testbed.fds["client"], cpus=cpus["client"], timeout=length + 20)
        if not server.alive():
            raise ToolError(f"sockperf server: {server.why_it_ended()}")
        spun = server.cpu_seconds() / length
    if wait == "busy" and spun < 0.8:
        raise ToolError(f"sockperf server: used {spun:.0%} of its core: it didn't spin, so this is no comparison")
    return parse_sockperf(text)[0]


# --- TLS handshakes ---------------------------------------------------------------------------------------------

def parse_s_time(text):
    """Connections that `openssl s_time -new` made, all of them full handshakes."""
    count = re.search(r"^(\d+) connections in (\d+) real seconds", text, re.M)
    if not count:
        raise ToolError(f"openssl s_time: no count: {processes.last_words(text)}")
    if re.search(r"^[*t3]*r[*t3r]*$", text, re.M):
        raise ToolError("openssl s_time: resumed sessions; full handshakes were asked for")
    if int(count[1]) < 2:
        raise ToolError(f"openssl s_time: {count[1]} connections only")
    return int(count[1])


def s_server(testbed, cpus, identities, port):
    """The server of both tools: TLS 1.3, X25519, certificates asked of the client and checked, no tickets."""
    # It reads its terminal; an end of file there would end it.
    return processes.Child(
        ["openssl", "s_server", "-accept", f"{ADDRESSES['server']}:{port}", "-quiet", "-tls1_3", "-ciphersuites",
         "TLS_AES_256_GCM_SHA384", "-groups", "X25519", "-num_tickets", "0", "-no_ticket", "-no_cache", "-Verify", "2",
         "-verify_return_error", "-verify_quiet", "-CAfile", identities.bundle(), "-cert",
         identities.certificate("server"), "-key", identities.key("server"), "-naccept", "100000000"],
        namespace=testbed.fds["server"], cpus=cpus["server"], keep=identities.descriptors(), stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=processes.LOG)


def check_none_refused(servers):
    """A ToolError if a server has turned a client down, or has ended."""
    for server in servers:
        if not server.alive():
            raise ToolError(f"openssl s_server: {server.why_it_ended()}")
        if complaint := s_server_complaint(server.log_text()):
            raise ToolError(f"openssl s_server: refused a client: {complaint}")


GONE = "unexpected eof while reading"  # the client went away in between: its window was over


def s_server_complaint(log):
    """The first reason that TLS had to turn a client down; None while all is well."""
    reasons = re.findall(r":SSL routines:[^:\n]*:([^:\n]+)", log)
    return next((reason for reason in reasons if reason != GONE), None)


def s_time(testbed, cpus, identities, ports, measure):
    """{"per_s", "cpu_s", "handshakes"} of `openssl s_time -new`, one process for each port, all at once on one core.

    It counts in whole seconds of the wall clock, begun anywhere inside the first: its own rate is off by up to a
    second's worth. It writes a letter for each connection, so the time from the first letter to its end is exact;
    the letters of one run fit into a pipe, and nobody reads them meanwhile.
    """
    length = max(1, math.ceil(measure))
    with contextlib.ExitStack() as stack:
        runs = [stack.enter_context(STime(testbed, cpus, identities, port, length)) for port in ports]
        for run in runs:
            run.begin(length + 20)
        waiting = {run.watch: run for run in runs}
        while waiting:
            ready = select.select(list(waiting), [], [], length + 20)[0]
            if not ready:
                raise ToolError(f"openssl s_time: still running after {length + 20} s")
            for fd in ready:
                waiting.pop(fd).end()
        results = [run.result() for run in runs]
    return {key: math.fsum(result[key] for result in results) for key in ("handshakes", "per_s", "cpu_s")}


class STime:
    """One `openssl s_time -new`."""

    def __init__(self, testbed, cpus, identities, port, length):
        self.child = processes.Child(
            ["openssl", "s_time", "-connect", f"{ADDRESSES['server']}:{port}", "-new", "-time", str(length), "-tls1_3",
             "-ciphersuites", "TLS_AES_256_GCM_SHA384", "-verify", "2", "-CAfile", identities.bundle(), "-cert",
             identities.certificate("client"), "-key", identities.key("client")],
            namespace=testbed.fds["client"], cpus=cpus["client"], keep=identities.descriptors(),
            stderr=subprocess.DEVNULL)
        self.watch = os.pidfd_open(self.child.pid)

    def begin(self, timeout):
        self.head = first_letter(self.child.popen.stdout.fileno(), timeout)
        self.began, self.cpu_began = time.monotonic(), self.child.cpu_seconds()

    def end(self):
        self.seconds = time.monotonic() - self.began
        self.cpu = self.child.cpu_seconds() - self.cpu_began  # a zombie still tells

    def result(self):
        text, _ = self.child.finish(10)
        handshakes = parse_s_time(self.head + text) - 1
        return {"handshakes": handshakes, "per_s": handshakes / self.seconds, "cpu_s": self.cpu}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.watch)
        self.child.kill()


def first_letter(pipe, timeout):
    """What s_time says up to the end of its first connection. Read byte by byte: the rest stays in the pipe."""
    head, deadline = b"", time.monotonic() + timeout
    while not re.search(rb"\n[*rt3]$", head):
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        byte = os.read(pipe, 1) if ready else b""
        if not byte:
            raise ToolError("openssl s_time: no connection came about: " +
                            processes.last_words(head.decode(errors="replace")))
        head += byte
    return head.decode(errors="replace")


def fsbl_handshakes(program, testbed, cpus, identities, ports, warm_up, measure, peer_id):
    """The JSON of fsbl-bench-handshakes against the same servers, one flow at a time to each."""
    text = processes.run(
        [program, ADDRESSES["server"], *map(str, ports), "--local-address", ADDRESSES["client"], "--key",
         identities.key("client"), "--chain", identities.certificate("client"), "--bundle", identities.bundle(),
         "--peer-id", peer_id, "--at-a-time", str(len(ports)), "--warm-up", str(warm_up), "--seconds", str(measure),
         "--cpu", str(cpus["client"][0])],
        namespace=testbed.fds["client"], cpus=cpus["client"], keep=identities.descriptors(),
        timeout=warm_up + measure + 20)
    return parse_fsbl_handshakes(text)


def parse_fsbl_handshakes(text):
    try:
        found = json.loads(text)
        if found["failed"]:
            raise ToolError(f"fsbl-bench-handshakes: {found['failed']} failed: {found.get('first_failure', '?')}")
        if found["handshakes"] < 1 or found["per_s"] <= 0 or found["cpu_s"] < 0:
            raise ToolError("fsbl-bench-handshakes: no handshake inside the window")
    except (ValueError, KeyError, TypeError) as error:
        raise ToolError(f"fsbl-bench-handshakes: malformed output: {error!r}") from error
    return found


# --- what OpenSSL's primitives would allow ----------------------------------------------------------------------

def parse_speed(text):
    """{"sign_per_s", "verify_per_s", "x25519_per_s"} from `openssl speed -mr ecdsap256 ecdhx25519`."""
    sign = re.search(r"^\+F4:\d+:256:([0-9.]+):([0-9.]+)$", text, re.M)
    derive = re.search(r"^\+F5:\d+:253:([0-9.]+):", text, re.M)
    if not sign or not derive:
        raise ToolError(f"openssl speed: no P-256 or X25519 in its output: {processes.last_words(text)}")
    return {"sign_per_s": float(sign[1]), "verify_per_s": float(sign[2]), "x25519_per_s": float(derive[1])}


def openssl_speed(cpus, seconds):
    return parse_speed(processes.run(["openssl", "speed", "-mr", "-seconds", str(max(1, round(seconds))), "ecdsap256",
                                      "ecdhx25519"], cpus=cpus["client"], timeout=60))


# --- record engines ---------------------------------------------------------------------------------------------

def parse_benchmark(text, name):
    """Bytes a second of one Google Benchmark case."""
    try:
        cases = json.loads(text[text.index("{"):])["benchmarks"]
    except (ValueError, KeyError) as error:
        raise ToolError(f"fsbl-bench-engines: malformed output: {error!r}") from error
    found = [case for case in cases if case.get("run_type") == "iteration" and case.get("name", "").startswith(name)]
    if len(found) != 1:
        raise ToolError(f"fsbl-bench-engines: {len(found)} results for {name}")
    if found[0].get("error_occurred"):
        raise ToolError(f"fsbl-bench-engines: {name}: {found[0].get('error_message', 'an error')}")
    if not found[0].get("bytes_per_second", 0) > 0:
        raise ToolError(f"fsbl-bench-engines: {name}: no bytes_per_second")
    return found[0]["bytes_per_second"]


def benchmark_names(program):
    """The cases that this build of fsbl-bench-engines has."""
    return processes.run([program, "--benchmark_list_tests=true"], timeout=60).split()


def benchmark(program, cpus, name, measure):
    # Not re.escape(): the program's expressions take no escape of a character that needs none.
    exactly = re.sub(r"([.+*?()\[\]{}|^$\\])", r"\\\1", name)
    text = processes.run([program, f"--benchmark_filter=^{exactly}$", f"--benchmark_min_time={measure}",
                          "--benchmark_format=json"], cpus=cpus["client"], timeout=measure * 10 + 60)
    return parse_benchmark(text, name)
