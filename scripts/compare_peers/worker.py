"""fsbl's side of a pair: two fsbl-workers, driven by the frames that fsbl-agent sends them (harness/protocol/frame.h,
harness/worker/worker.cpp)."""
import json
import select
import socket
import struct
import time

from . import processes
from .errors import Missing, ToolError
from .namespaces import ADDRESSES

HEADER = struct.Struct("<IBI")  # length, kind, id
JSON_KIND = 1
LARGEST = 64 << 20
PROTOCOL = 1
CANARY = "FSBL-compare-peers-canary-______"  # 32 bytes: the hello carries them


def error_text(error):
    """"what: why; fix" of the protocol's error object."""
    text = f"{error.get('what', '?')}: {error.get('why', '?')}"
    return f"{text}; {error['fix']}" if error.get("fix") else text


class Worker:
    """One fsbl-worker in one namespace. Requests may be sent to both sides before either is answered."""

    def __init__(self, program, role, namespace, cpus, environment=None):
        self.role = role
        self.last_id = 0
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                self.child = processes.Child([program, "--channel=3"], namespace=namespace, cpus=cpus,
                                             channel=theirs.fileno(), environment=environment,
                                             stderr=processes.LOG)
            except BaseException:
                ours.close()
                raise
        self.socket = ours
        self.buffer = b""

    def send(self, op, **arguments):
        self.last_id += 1
        payload = json.dumps({"op": op, **arguments}).encode()
        try:
            self.socket.sendall(HEADER.pack(len(payload), JSON_KIND, self.last_id) + payload)
        except OSError as error:
            raise ToolError(f"fsbl-worker ({self.role}): {op}: {self._ending() or error}") from error

    def receive(self, timeout):
        """The answer to the last request. An error that says that this host can't is Missing."""
        deadline = time.monotonic() + timeout
        header = HEADER.unpack(self._take(HEADER.size, deadline))
        if header[1:] != (JSON_KIND, self.last_id) or header[0] > LARGEST:
            raise ToolError(f"fsbl-worker ({self.role}): answered with a frame that nobody asked for: {header}")
        try:
            reply = json.loads(self._take(header[0], deadline))
        except ValueError as error:
            raise ToolError(f"fsbl-worker ({self.role}): its answer is no JSON: {error}") from error
        if "ok" in reply:
            return reply["ok"]
        error = reply.get("error") or {}
        kind = Missing if error.get("kind") == "unavailable" else ToolError
        raise kind(f"fsbl-worker ({self.role}): {error_text(error)}")

    def call(self, op, timeout=20.0, **arguments):
        self.send(op, **arguments)
        return self.receive(timeout)

    def _take(self, size, deadline):
        while len(self.buffer) < size:
            ready, _, _ = select.select([self.socket], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise ToolError(f"fsbl-worker ({self.role}): no answer within the time limit")
            got = self.socket.recv(1 << 20)
            if not got:
                raise ToolError(f"fsbl-worker ({self.role}): {self._ending() or 'closed its channel'}")
            self.buffer += got
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def _ending(self):
        """How it ended and what it said last, or None while it lives."""
        try:
            self.child.popen.wait(0.5)
        except processes.subprocess.TimeoutExpired:
            return None
        return self.child.why_it_ended()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.child.kill()


def run_round(program, testbed, config, secrets=None, environment=None):
    """One round, as run/round_runner.cpp has it; returns {role: reading}. Every operation must have come out well."""
    cpus = {role: config["placement"][role] for role in ADDRESSES}
    with Worker(program, "server", testbed.fds["server"], cpus["server"], environment) as server, \
            Worker(program, "client", testbed.fds["client"], cpus["client"], environment) as client:
        sides = {"server": server, "client": client}
        for side in sides.values():
            hello = side.call("hello")
            if hello.get("protocol") != PROTOCOL:
                raise ToolError(f"fsbl-worker speaks protocol {hello.get('protocol')}, this script {PROTOCOL}; "
                                "use those of one checkout")
        ports = None
        for role, side in sides.items():
            setup = side.call("setup", role=role, config=config, address=ADDRESSES["server"],
                              local_address=ADDRESSES[role], pattern_seed=1, canary=CANARY, threads=1,
                              secrets=(secrets or {}).get(role, {}))
            ports = setup["ports"] if role == "server" else ports
        for side in sides.values():
            side.send("connect", ports=ports, timeout_ns=15_000_000_000)
        for side in sides.values():
            outcome = side.receive(20)
            if outcome["established"] != outcome["planned"] or outcome["planned"] < 1:
                why = [str(item) for item in outcome["refusals"] + outcome["failures"]]
                raise ToolError(f"fsbl-worker ({side.role}): {outcome['established']} of {outcome['planned']} flows "
                                f"came up: {'; '.join(why) or 'no reason given'}")
        for side in sides.values():
            side.send("go")
        phases = config["phases"]
        longest = sum(phases[key] for key in ("warm_up_ns", "measure_ns", "cool_down_ns")) / 1e9 + 30
        readings = {role: side.receive(longest) for role, side in sides.items()}
    for role, reading in readings.items():
        if reading["failed"] or reading["failures"]:
            raise ToolError(f"fsbl-worker ({role}): {reading['failed']} failed: {'; '.join(reading['failures'])}")
    return readings


def throughput_gbps(readings):
    """Authenticated bytes at the receiving application over the receiver's window."""
    rate = readings["server"]["received_bps"] / 1e9
    if not rate > 0:
        raise ToolError("fsbl-worker (server): received nothing inside the window")
    return rate


def round_trip_p50_us(readings):
    try:
        return readings["client"]["latency"]["quantiles"]["p50"] / 1e3
    except KeyError as error:
        raise ToolError("fsbl-worker (client): no round trip inside the window") from error
