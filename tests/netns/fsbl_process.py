"""Starts fsbl, follows its processes through /proc, and knows what it must not leave behind."""
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import uuid

MARK = "FSBL_TEST_RUN"  # in the environment of every process of a run, whoever its parent is by then
LIMIT = 90              # seconds after which a run is called hung


def wait_until(condition, seconds, every=0.005):
    """The first true value of condition(), or its last one after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(every)
    return value


def read(path, mode="r"):
    """The text of a /proc file; empty when the process is gone or not ours to look at."""
    try:
        with open(path, mode) as file:
            return file.read()
    except OSError:
        return "" if mode == "r" else b""


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    command: tuple

    @property
    def kind(self):
        """fsbl, fsbl-agent, fsbl-worker, wireguard-go, or the name of another program."""
        if "--channel=3" in self.command:
            return "fsbl-worker"
        return pathlib.PurePath(self.command[0]).name if self.command else ""

    def kill(self, number=signal.SIGKILL):
        """By a descriptor, so that a reused number is never hit. False when it was gone already."""
        try:
            fd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if command_of(self.pid) != self.command:
                return False
            signal.pidfd_send_signal(fd, number)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(fd)


def command_of(pid):
    return tuple(word.decode() for word in read(f"/proc/{pid}/cmdline", "rb").split(b"\0")[:-1])


def names_in(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def children(pid):
    return [int(child) for task in names_in(f"/proc/{pid}/task")
            for child in read(f"/proc/{pid}/task/{task}/children").split()]


def started_at(pid):
    """Clock ticks since boot; None when it is gone."""
    stat = read(f"/proc/{pid}/stat")
    return int(stat.rpartition(")")[2].split()[19]) if stat else None


def is_zombie(pid):
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] == ["Z"]


@dataclasses.dataclass
class Finished:
    code: int
    out: str
    err: str
    folder: pathlib.Path
    seconds: float

    @property
    def result(self):
        return json.loads((self.folder / "result.json").read_text(encoding="utf-8"))

    def __str__(self):
        return f"exit {self.code}\nstdout:\n{self.out[-3000:]}\nstderr:\n{self.err[-3000:]}"


class Fsbl:
    """A started fsbl in a session and process group of its own."""

    def __init__(self, program, arguments, cwd, folder, environment=None, **popen):
        self.mark = uuid.uuid4().hex
        self.folder = folder
        self.tmpdir = pathlib.Path(tempfile.mkdtemp(prefix="fsbl-tmp-"))
        self.tmpdir.chmod(0o1777)
        self.seen = {}          # pid → Process, everything that was a descendant once
        self.namespaces = set()  # inodes of network namespaces that only this run was in
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self._own = {link("/proc/self/ns/net"), ""}
        self._begin = time.monotonic()
        self.popen = subprocess.Popen(
            [str(program), *map(str, arguments)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=self._out,
            stderr=self._err, start_new_session=True,
            env={**os.environ, "TMPDIR": str(self.tmpdir), MARK: self.mark, **(environment or {})}, **popen)
        self.pid = self.popen.pid

    def processes(self):
        """Those alive now, by a walk from the one that was started."""
        found, queue = [], [self.pid]
        while queue:
            pid = queue.pop()
            queue += children(pid)
            if is_zombie(pid) or not (command := command_of(pid)):
                continue
            process = Process(pid, command)
            found.append(process)
            self.seen[pid] = process
            if (namespace := link(f"/proc/{pid}/ns/net")) not in self._own:
                self.namespaces.add(namespace)
        return found

    def find(self, kind, side=None):
        """A living process of that kind; the client's side was started first."""
        found = sorted((p for p in self.processes() if p.kind == kind), key=lambda p: p.pid)
        if side is None:
            return found[0] if found else None
        agents = sorted(p.pid for p in self.processes() if p.kind == "fsbl-agent")
        for process in found:
            agent = process.pid if kind == "fsbl-agent" else parent_of(process.pid)
            if agent in agents and agents.index(agent) == ("client", "server").index(side):
                return process
        return None

    def wait_for(self, kind, side=None, seconds=10):
        process = wait_until(lambda: self.find(kind, side) or self.popen.poll() is not None, seconds)
        return process if isinstance(process, Process) else None

    def wait(self, seconds=LIMIT):
        deadline = time.monotonic() + seconds
        while self.popen.poll() is None:
            self.processes()
            if time.monotonic() > deadline:
                waiting = self.processes()
                self.end()
                raise AssertionError(f"fsbl hung for {seconds} s; then there were {waiting}\n{self._text(self._err)}")
            time.sleep(0.02)
        return Finished(self.popen.returncode, self._text(self._out), self._text(self._err), self.folder,
                        time.monotonic() - self._begin)

    def end(self):
        """Whatever a failed test left."""
        for process in self.processes():
            process.kill()
        self.popen.wait(10)

    def text(self):
        """What it wrote until now."""
        return self._text(self._out) + self._text(self._err)

    @staticmethod
    def _text(file):
        file.seek(0)
        return file.read().decode("utf-8", "replace")

    def remaining_processes(self):
        found = []
        for pid in pids():
            marked = f"{MARK}={self.mark}".encode() in read(f"/proc/{pid}/environ", "rb")
            known = pid in self.seen and command_of(pid) == self.seen[pid].command
            if (marked or known) and not is_zombie(pid):
                found.append(Process(pid, command_of(pid)))
        return found

    def remaining_namespaces(self, until):
        """Network namespaces of this run that a process older than `until` (clock ticks) is in or holds open."""
        held = []
        for pid in pids():
            if (start := started_at(pid)) is None or start > until:
                continue
            for path in [f"/proc/{pid}/ns/net", *(f"/proc/{pid}/fd/{fd}" for fd in names_in(f"/proc/{pid}/fd"))]:
                if (target := link(path)) in self.namespaces:
                    held.append((target, path, command_of(pid)))
        return held


def parent_of(pid):
    stat = read(f"/proc/{pid}/stat")
    return int(stat.rpartition(")")[2].split()[1]) if stat else 0


def host_traces():
    """What a run must leave as it was, in this network and mount namespace."""
    mounts = {" ".join(line.split()[3:]) for line in read("/proc/self/mountinfo").splitlines()}
    return {"interfaces": {name for _, name in socket.if_nameindex()}, "mounts": mounts,
            **{folder: set(os.listdir(folder)) for folder in ("/run", "/dev/shm") if os.path.isdir(folder)}}


def assert_nothing_left(run, before, seconds=5):
    """The kernel cleans up behind a killed process, a moment later; hence the bounded wait."""
    until = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
    wait_until(lambda: not run.remaining_processes(), seconds, 0.02)
    assert not run.remaining_processes(), "processes of the run are left"
    wait_until(lambda: not run.remaining_namespaces(until), seconds, 0.05)
    assert not run.remaining_namespaces(until), "network namespaces of the run are left"
    for what, now in host_traces().items():
        assert not now - before[what], f"{what} are left"
    assert not list(run.tmpdir.iterdir()), "temporary files are left"
    run.tmpdir.rmdir()
