"""The members of each interleaved group: what is run for one value of one block."""
import contextlib
import copy
import json
import os
import re

from . import identity, peers, processes, worker
from .errors import Missing, ToolError
from .namespaces import Testbed

COOL_DOWN_NS = 100_000_000
FIRST_PORT = 20000


def nanos(seconds):
    return round(seconds * 1e9)


class Host:
    """What all groups share: programs, cores, fsbl's configurations, identities, testbeds."""

    def __init__(self, options, stack):
        self.options = options
        self.stack = stack
        self.cpus = {"client": [options.cores[0]], "server": [options.cores[1]]}
        self.environment = {"FSBL_DATA_DIR": str(options.top)}
        self.testbeds = {}
        self._identities = None
        self._configs = None
        self._unusable = None
        self._next_port = FIRST_PORT
        self.engine_cases = {}  # {member: the benchmark's name}
        self.handshake_details = {"fsbl": [], "s_time": [], "s_time-at-once": []}

    def program(self, name):
        path = os.path.join(self.options.bin, name)
        if not os.access(path, os.X_OK):
            raise Missing(f"{name} is not in {self.options.bin}; build it: scripts/compare-peers does")
        return path

    def testbed(self, mtu):
        if mtu not in self.testbeds:
            self.testbeds[mtu] = self.stack.enter_context(Testbed(mtu, self.options.congestion))
        return self.testbeds[mtu]

    def identities(self):
        if self._identities is None:
            self._identities = self.stack.enter_context(identity.Identities())
        return self._identities

    def ports(self, count):
        """Fresh ones: no connection of an earlier block lingers on them."""
        self._next_port += count
        if self._next_port > 32000:
            self._next_port = FIRST_PORT + count
        return list(range(self._next_port - count, self._next_port))

    def _fsbl(self, *words):
        text = processes.run([self.program("fsbl"), *words], timeout=60, environment=self.environment)
        try:
            return json.loads(text)
        except ValueError as error:
            raise ToolError(f"fsbl {words[0]}: its output is no JSON: {error}") from error

    def unusable(self, transport):
        """Why fsbl can't run a transport here; "" if it can."""
        if self._unusable is None:
            rows = self._fsbl("doctor", "--json")["transports"]
            self._unusable = {row["name"]: "" if row["usable"] else "; ".join(filter(None, (row["text"], row["fix"])))
                              for row in rows}
        return self._unusable.get(transport, "not known to this build")

    def config(self, transport, mtu, **load):
        """One stream of 64 KiB writes over a transport, as `fsbl run` hands it to its workers; `load` changes it."""
        if self._configs is None:
            plan = self._fsbl("run", "fsbl/throughput", "--profile", "quick", "--dry-run")
            self._configs = {cell["factors"]["transport"]: cell["config"] for cell in plan["cells"]
                             if cell["factors"]["streams"] == 1}
        if transport not in self._configs:
            raise Missing(f"transport {transport} is not in the plan of fsbl/throughput")
        config = copy.deepcopy(self._configs[transport])
        config["load"].update(load)
        config["testbed"]["mtu"] = mtu
        config["placement"].update(self.cpus)
        config["phases"].update(warm_up_ns=nanos(self.options.warm_up), measure_ns=nanos(self.options.measure),
                                cool_down_ns=COOL_DOWN_NS, min_samples=0, max_duration_ns=0)
        return config


class Group:
    """Members that are measured by turns: every block has each once. A member is (check, run): check raises Missing
    before anything is measured, run gives one value."""

    def __init__(self, name, title, mtu, wait, members, seconds):
        self.name, self.title, self.mtu, self.wait = name, title, mtu, wait
        self.members, self.seconds = members, seconds


def fsbl_stream(host, transport, mtu):
    def check():
        host.program("fsbl-worker")
        if reason := host.unusable(transport):
            raise Missing(f"{transport}: {reason}")
        host.config(transport, mtu)

    def run():
        config = host.config(transport, mtu)
        secrets = None
        if config["transport"]["session"] == "tls":
            secrets = {role: host.identities().secrets(role) for role in identity.ROLES}
        return worker.throughput_gbps(
            worker.run_round(host.program("fsbl-worker"), host.testbed(mtu), config, secrets, host.environment))

    return check, run


def fsbl_ping_pong(host, mtu, wait):
    def check():
        host.program("fsbl-worker")
        host.config("plaintext", mtu)

    def run():
        config = host.config("plaintext", mtu, shape="request-response", payload_bytes=64, reply_bytes=64, wait=wait)
        return worker.round_trip_p50_us(
            worker.run_round(host.program("fsbl-worker"), host.testbed(mtu), config, None, host.environment))

    return check, run


def on_path(name):
    """A check for a peer tool."""
    def check():
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
        if not any(os.access(os.path.join(folder, name), os.X_OK) for folder in folders if folder):
            raise Missing(f"{name} is not installed; scripts/setup --peers installs it")

    return check


def stream_group(host):
    options = host.options
    return Group("stream", f"plaintext stream, MTU {options.mtu}", options.mtu, "block", {
        "plaintext": fsbl_stream(host, "plaintext", options.mtu),
        "iperf3": (on_path("iperf3"), lambda: peers.iperf3(host.testbed(options.mtu), host.cpus, options.warm_up,
                                                           options.measure)),
    }, options.warm_up + options.measure + 0.8)


def stream_9000_group(host):
    return Group("stream-9000", "plaintext, mtls, mtls-dpdk streams, MTU 9000", 9000, "block", {
        transport: fsbl_stream(host, transport, 9000) for transport in ("plaintext", "mtls", "mtls-dpdk")
    }, host.options.warm_up + host.options.measure + 0.5)


def ping_pong_group(host, wait):
    mtu, measure = host.options.mtu, host.options.measure
    return Group(f"rr64-{wait}", f"64 B ping-pong, wait {wait}", mtu, wait, {
        "fsbl": fsbl_ping_pong(host, mtu, wait),
        "sockperf": (on_path("sockperf"), lambda: peers.sockperf(host.testbed(mtu), host.cpus, wait, measure)),
    }, host.options.warm_up + measure + 0.8)


def handshake_group(host):
    options = host.options
    testbed_of = lambda: host.testbed(options.mtu)  # noqa: E731  made when it is needed

    @contextlib.contextmanager
    def servers(count):
        ports, started = host.ports(count), []
        with contextlib.ExitStack() as stack:
            for port in ports:
                server = stack.enter_context(peers.s_server(testbed_of(), host.cpus, host.identities(), port))
                processes.wait_for_listener(server, port)
                started.append(server)
            yield ports
            # A client of TLS 1.3 learns late that it was refused, and s_time doesn't even wait for it: ask the servers.
            peers.check_none_refused(started)

    def note(name, found):
        host.handshake_details[name].append(found["cpu_s"] / found["handshakes"] * 1e6)
        return found["per_s"]

    def fsbl():
        with servers(options.at_a_time) as ports:
            return note("fsbl", peers.fsbl_handshakes(
                host.program("fsbl-bench-handshakes"), testbed_of(), host.cpus, host.identities(), ports,
                options.warm_up, options.measure, identity.spiffe_id("server")))

    def s_time(name, count):
        with servers(count) as ports:
            return note(name, peers.s_time(testbed_of(), host.cpus, host.identities(), ports, options.measure))

    return Group("handshake", "mutual TLS 1.3 handshakes", options.mtu, "block", {
        "fsbl": (lambda: host.program("fsbl-bench-handshakes"), fsbl),
        "s_time": (on_path("openssl"), lambda: s_time("s_time", 1)),
        "s_time-at-once": (on_path("openssl"), lambda: s_time("s_time-at-once", options.at_a_time)),
    }, options.warm_up + options.measure + 1.0)


ENGINE_CASES = {"cryptodev": r"^seal/cryptodev:\S*aes-256-gcm/16384/burst:32",
                "ipsec_mb": r"^seal/ipsec_mb/aes-256-gcm/16384/burst:32"}


def engine_group(host):
    """Sealing 16 KiB records with AES-256-GCM, bursts of 32: fsbl's cryptodev engine beside the library itself."""
    names, seconds = host.engine_cases, host.options.measure / 4

    def check(member):
        program = host.program("fsbl-bench-engines")
        found = [name for name in peers.benchmark_names(program) if re.match(ENGINE_CASES[member], name)]
        found.sort(key=lambda name: "aesni_gcm" not in name)  # the driver over the same library, if there is a choice
        if not found:
            raise Missing(f"fsbl-bench-engines has no case {ENGINE_CASES[member]} in this build")
        names[member] = found[0]

    def run(member):
        return peers.benchmark(host.program("fsbl-bench-engines"), host.cpus, names[member], seconds) / 1e9

    return Group("engine", "AES-256-GCM records of 16 KiB", None, None, {
        member: (lambda member=member: check(member), lambda member=member: run(member)) for member in ENGINE_CASES
    }, seconds * 2 + 1.0)


def all_groups(host):
    return {group.name: group for group in (
        stream_group(host), ping_pong_group(host, "busy"), ping_pong_group(host, "block"), stream_9000_group(host),
        handshake_group(host), engine_group(host))}
