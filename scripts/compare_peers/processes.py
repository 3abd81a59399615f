"""Children: started in a namespace, on given CPUs, and never left behind. The kernel kills them when the script dies
(PR_SET_PDEATHSIG), and leaving a `with` kills them too."""
import ctypes
import os
import re
import signal
import subprocess
import time

from .errors import Missing, ToolError

PR_SET_PDEATHSIG = 1
LOG = object()  # as stderr: a file in memory
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def reserve_descriptor_3():
    """Descriptor 3 is the worker's channel. It must be taken in this process, or Python's own pipe for the errors of
    exec could get that number in the child."""
    try:
        os.fstat(3)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), False)


def setup_child(namespace, cpus, channel, parent):
    """What is done in the child between fork and exec."""
    def setup():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before prctl
            os._exit(1)
        if namespace is not None and libc.setns(namespace, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        if cpus:
            os.sched_setaffinity(0, cpus)
        if channel is not None:
            os.dup2(channel, 3)

    return setup


class Child:
    """A running program. `with` it: at the end it is killed, if it is still there, and reaped."""

    def __init__(self, argv, *, namespace=None, cpus=None, channel=None, keep=(), stdin=subprocess.DEVNULL,
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, environment=None):
        self.name = os.path.basename(str(argv[0]))
        self.log = None
        if stderr is LOG:  # a server may say more than a pipe holds, and nobody reads it while it serves
            self.log = stderr = os.memfd_create("log", os.MFD_CLOEXEC)
        passed = tuple(keep) + ((3,) if channel is not None else ())
        try:
            self.popen = subprocess.Popen(
                [str(word) for word in argv], stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=passed, text=True,
                errors="replace", env={**os.environ, "LC_ALL": "C", **(environment or {})},
                preexec_fn=setup_child(namespace, cpus, channel, os.getpid()))
        except FileNotFoundError as error:
            self._close_log()
            raise Missing(f"{self.name} is not installed; scripts/setup --peers installs what is missing") from error
        except (OSError, subprocess.SubprocessError) as error:
            self._close_log()
            raise ToolError(f"start {self.name}: {error}") from error

    @property
    def pid(self):
        return self.popen.pid

    def finish(self, timeout):
        """Waits for its end; (stdout, stderr). Any exit but 0 is a ToolError with its last words."""
        try:
            out, err = self.popen.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ToolError(f"{self.name}: still running after {timeout:.0f} s") from None
        if self.popen.returncode != 0:
            raise ToolError(f"{self.name}: {self.ending()}: {last_words(err or '', out or '')}")
        return out or "", err or ""

    def ending(self):
        code = self.popen.returncode
        return f"ended by signal {-code}" if code is not None and code < 0 else f"exit {code}"

    def alive(self):
        return self.popen.poll() is None

    def cpu_seconds(self):
        """User and system time so far, all threads."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        if self.alive():
            self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if stream:
                stream.close()
        self._close_log()

    def _close_log(self):
        if self.log is not None:
            os.close(self.log)
            self.log = None

    def log_text(self, most=1 << 20):
        """What it said on stderr so far, the beginning."""
        return os.pread(self.log, most, 0).decode(errors="replace")

    def why_it_ended(self):
        """How, and its last words. Only for one that has ended."""
        out, err = self.popen.communicate()
        if self.log is not None:
            err = self.log_text()
        return f"{self.ending()}: {last_words(err or '', out or '')}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def last_words(*texts):
    """The last line that says something, of the first text that has one; of iperf3's JSON, its error."""
    for text in texts:
        if found := re.search(r'"error":\s*"(.+)"', text):
            return found[1][:300]
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return lines[-1][:300]
    return "it said nothing"


def run(argv, *, timeout, **options):
    """Runs a program to its end and returns its stdout."""
    with Child(argv, **options) as child:
        return child.finish(timeout)[0]


def wait_for_listener(child, port, timeout=10.0):
    """Until the child's network namespace has a TCP listener on the port."""
    wanted = f":{port:04X}"
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if not child.alive():
            raise ToolError(f"{child.name}: ended before it listened: {child.why_it_ended()}")
        for table in ("tcp", "tcp6"):
            try:
                with open(f"/proc/{child.pid}/net/{table}", encoding="ascii") as file:
                    rows = [line.split() for line in file][1:]
            except OSError:
                continue
            if any(row[1].endswith(wanted) and row[3] == "0A" for row in rows):
                return
        time.sleep(0.01)
    raise ToolError(f"{child.name}: doesn't listen on port {port} after {timeout:.0f} s")
