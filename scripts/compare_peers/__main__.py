"""The command line of compare-peers; `scripts/compare-peers` builds first and then comes here."""
import argparse
import contextlib
import os
import pathlib
import re
import signal
import sys

from . import blocks, environment, groups, namespaces, output, pairs, processes
from .errors import Cancelled, Missing, ToolError

DONE, USAGE, CANNOT, FAILED, CANCELLED = 0, 2, 4, 5, 130

EPILOG = """names: {names}

A missed bar is information: the exit code stays 0.
exit codes: 0 done · 2 bad usage · 4 nothing could run here · 5 a tool failed · 130 cancelled
"""


def cores_here():
    """Client and server core: the first two that this process may use, as fsbl's own default."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[min(1, len(usable) - 1)]


def parse_cores(text):
    try:
        client, server = (int(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not CLIENT,SERVER, e.g. 0,1") from None
    for core in (client, server):
        if core not in os.sched_getaffinity(0):
            raise argparse.ArgumentTypeError(f"core {core} is not one that this process may use")
    return client, server


def parse_seconds(text):
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds") from None
    if not 0.5 <= value <= 60 or value * 2 != int(value * 2):
        raise argparse.ArgumentTypeError(f"{text} is not a multiple of 0.5 between 0.5 and 60")
    return value


def whole(low, high):
    def parse(text):
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
        return value

    return parse


def congestion_name(text):
    if not re.fullmatch(r"[a-z0-9_]{1,15}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a congestion control, as in "
                                         "/proc/sys/net/ipv4/tcp_available_congestion_control")
    return text


def parse_arguments(argv):
    top = pathlib.Path(__file__).resolve().parent.parent.parent
    parser = argparse.ArgumentParser(
        prog="compare-peers", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures fsbl and the tools that others measure with by turns, in the same namespaces, on\n"
                    "the same cores, with the same wait mode, MTU and write size; prints paired ratios with\n"
                    "intervals.",
        epilog=EPILOG.format(names=" ".join(pairs.NAMES)))
    parser.add_argument("--json", action="store_true", help="the result as JSON on stdout")
    parser.add_argument("--only", action="append", metavar="NAME", default=[], help="one name; may be repeated")
    parser.add_argument("--blocks", type=int, metavar="N",
                        help="blocks, each member once a block: 6 or more (default 8)")
    parser.add_argument("--seconds", type=parse_seconds, default=2.0, metavar="S", dest="measure",
                        help="length of a window, a multiple of 0.5 (default 2)")
    parser.add_argument("--mtu", type=whole(1280, 65535), default=1500,
                        help="of all but the streams at 9000 (default 1500)")
    parser.add_argument("--congestion", metavar="NAME", type=congestion_name,
                        help="TCP congestion control of both sides, for every tool (default: this host's)")
    parser.add_argument("--cores", type=parse_cores, metavar="CLIENT,SERVER", help="default: the first two usable ones")
    parser.add_argument("--seed", type=whole(0, 2**63), default=1, metavar="N",
                        help="of the order within blocks (default 1)")
    parser.add_argument("--bin", default=str(top / "build/suite/bin"), metavar="FOLDER", help="fsbl's programs")
    parser.add_argument("--trial", action="store_true",
                        help="to try the script itself: windows of 0.3 s, 2 blocks; the figures say nothing")
    parser.add_argument("--check-usage", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    for name in options.only:
        if name not in pairs.NAMES:
            parser.error(f"--only {name}: unknown; the names: {' '.join(pairs.NAMES)}")
    options.warm_up = 0.5
    if options.trial:
        options.warm_up, options.measure = 0.1, 0.3
    if options.blocks is None:
        options.blocks = 2 if options.trial else 8
    if options.blocks < (2 if options.trial else pairs.FULL_BLOCKS) or options.blocks > 1000:
        parser.error(f"--blocks {options.blocks}: an interval needs {pairs.FULL_BLOCKS} blocks or more")
    options.cores = options.cores or cores_here()
    options.names = [name for name in pairs.NAMES if not options.only or name in options.only]
    options.top, options.at_a_time, options.load_average = top, 8, os.getloadavg()[0]
    options.bin = os.path.abspath(options.bin)
    return options


def measure(options):
    with contextlib.ExitStack() as stack:
        host = groups.Host(options, stack)
        host.testbed(options.mtu)  # without one nothing can run: say so first
        found = blocks.run_all(groups.all_groups(host), options.names, options)
        found["environment"] = environment.environment(host)
        if any(pairs.needs(item["name"])[0] == "handshake" for item in found["pairs"] + found["derived"]):
            found["environment"]["handshake"] = environment.handshake_facts(host)
    return found


def raise_cancelled(*_):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # once is enough: what follows is the way out
    raise Cancelled


def main(argv):
    options = parse_arguments(argv)
    if options.check_usage:
        return DONE
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, raise_cancelled)
    try:
        processes.reserve_descriptor_3()
        options.rootless = os.geteuid() != 0
        if options.rootless:
            namespaces.enter_user_namespace()
        found = measure(options)
    except Cancelled:
        print("compare-peers: cancelled", file=sys.stderr)
        return CANCELLED
    except Missing as error:
        print(f"compare-peers: {error}", file=sys.stderr)
        return CANNOT
    except ToolError as error:
        print(f"compare-peers: {error}", file=sys.stderr)
        return FAILED
    sys.stdout.write(output.as_json(found) if options.json else output.text(found))
    sys.stdout.flush()
    if any(item["reason"].startswith("failed: ") for item in found["skipped"]):
        return FAILED
    return DONE if found["pairs"] or found["derived"] else CANNOT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
