"""Two unnamed network namespaces joined by one veth pair, set up as fsbl's own netns testbed does it
(harness/testbed/netns.cpp, testbed.cpp; harness/agent/agent.cpp). Only descriptors and processes hold them: with the
script gone, by whatever signal, so are they."""
import ctypes
import errno
import fcntl
import os
import socket
import struct
import threading

from . import processes
from .errors import Missing

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
LINK = "eth0"
ADDRESSES = {"client": "198.18.0.1", "server": "198.18.0.2"}

# linux/ethtool.h, linux/sockios.h; those that fsbl's own testbed reads.
SIOCETHTOOL = 0x8946
OFFLOADS = {"rx_checksum": 0x14, "tx_checksum": 0x16, "tso": 0x1e, "gso": 0x23, "gro": 0x2b}

# As in netns.cpp: what would put packets on the link that nobody asked for.
QUIET = {
    "net/ipv4/ip_forward": "0",
    "net/ipv6/conf/all/forwarding": "0",
    "net/ipv6/conf/default/disable_ipv6": "0",
    "net/ipv6/conf/default/accept_ra": "0",
    "net/ipv6/conf/default/autoconf": "0",
    "net/ipv6/conf/default/router_solicitations": "0",
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv6/conf/default/dad_transmits": "0",
}

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    """A libc call whose -1 is an OSError."""
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def on_own_thread(body):
    """Runs body on a thread of its own: unshare() and setns() of a network namespace stay with it."""
    outcome = {}

    def run():
        try:
            outcome["value"] = body()
        except BaseException as error:  # handed on below
            outcome["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def enter_user_namespace():
    """For an ordinary user: root of a user namespace of its own, with network and mounts of its own."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        call("unshare", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET)
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"0 {uid} 1")
        write("/proc/self/gid_map", f"0 {gid} 1")
        call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    except OSError as error:
        raise Missing(f"enter a user namespace: {error.strerror}; run as root, or allow unprivileged user namespaces "
                      "(fsbl doctor says which setting forbids it)") from error


def make_namespace():
    """A descriptor of a new network namespace with its loopback up."""
    def make():
        call("unshare", CLONE_NEWNET)
        for name, value in QUIET.items():
            try:
                write(f"/proc/sys/{name}", value)
            except OSError:
                pass  # a read-only /proc/sys costs a few packets of noise, no more
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    try:
        return on_own_thread(make)
    except OSError as error:
        hint = "raise user.max_net_namespaces" if error.errno == errno.ENOSPC else "run as root"
        raise Missing(f"make a network namespace: {error.strerror}; {hint}") from error


def in_namespace(fd, body):
    """body() with the calling thread inside a namespace."""
    def run():
        call("setns", fd, CLONE_NEWNET)
        return body()

    return on_own_thread(run)


class Testbed:
    """One client and one server namespace, and the veth pair between them at one MTU. `congestion`: the TCP congestion
    control of both, None for the host's."""

    def __init__(self, mtu, congestion=None):
        self.mtu = mtu
        self.fds = {}
        try:
            for role in ADDRESSES:
                self.fds[role] = make_namespace()
            far = self.fds["server"]
            self._ip("client", "link", "add", LINK, "mtu", str(mtu), "type", "veth", "peer", "name", LINK,
                     "mtu", str(mtu), "netns", f"/proc/self/fd/{far}", keep=(far,))
            for role, address in ADDRESSES.items():
                self._ip(role, "link", "set", "lo", "up")
                self._ip(role, "address", "add", f"{address}/30", "dev", LINK)
                self._ip(role, "link", "set", LINK, "up")
                if congestion:
                    self._set_congestion(role, congestion)
        except BaseException:
            self.close()
            raise

    def _ip(self, role, *words, keep=()):
        processes.run(["ip", *words], namespace=self.fds[role], keep=keep, timeout=20)

    def _set_congestion(self, role, name):
        def write():
            with open("/proc/sys/net/ipv4/tcp_congestion_control", "w", encoding="ascii") as file:
                file.write(name)

        try:
            in_namespace(self.fds[role], write)
        except OSError as error:
            raise Missing(f"--congestion {name}: {error.strerror}; a namespace may have those in "
                          "/proc/sys/net/ipv4/tcp_allowed_congestion_control") from None

    def sysctl(self, role, name):
        """The value of a net.* sysctl in that namespace."""
        path = "/proc/sys/" + name.replace(".", "/")

        def read():
            with open(path, encoding="ascii") as file:
                return " ".join(file.read().split())

        try:
            return in_namespace(self.fds[role], read)
        except OSError as error:
            return f"missing: {error.strerror}"

    def offloads(self):
        """{"tso": True, ...}: what the client's device does, asked of the device (SIOCETHTOOL)."""
        def ask():
            found = {}
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
                for name, command in OFFLOADS.items():
                    value = ctypes.create_string_buffer(struct.pack("=II", command, 0), 8)
                    request = struct.pack("16sP16x", LINK.encode(), ctypes.addressof(value))
                    try:
                        fcntl.ioctl(any_socket, SIOCETHTOOL, request)
                        found[name] = struct.unpack("=II", value.raw)[1] != 0
                    except OSError as error:
                        found[name] = f"missing: {error.strerror}"
            return found

        return in_namespace(self.fds["client"], ask)

    def close(self):
        for fd in self.fds.values():
            os.close(fd)
        self.fds = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
