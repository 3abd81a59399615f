"""Runs groups block by block, each block in an order drawn from the seed; keeps count of time and of what failed."""
import random
import sys
import time

from . import pairs
from .errors import Missing, ToolError


class Clock:
    """Planned and remaining time, on stderr."""

    def __init__(self, planned, out=sys.stderr):
        self.planned, self.left, self.spent, self.covered, self.out = planned, planned, 0.0, 0.0, out

    def did(self, planned, took):
        self.left -= planned
        self.spent += took
        self.covered += planned

    def remaining(self):
        """What is left, by how long the past took against its plan."""
        return self.left * (self.spent / self.covered if self.covered > 0 else 1.0)

    def say(self, text):
        print(f"compare-peers: {text}", file=self.out, flush=True)


def wanted_members(names):
    """{group: [members]} that the names need, in the order of the table."""
    wanted = {}
    for name in names:
        group, members = pairs.needs(name)
        for member in members:
            if member not in wanted.setdefault(group, []):
                wanted[group].append(member)
    return wanted


def check_members(group, members, lacking):
    """The members that can run; the others' reasons go to lacking[(group, member)]."""
    able = []
    for member in members:
        try:
            group.members[member][0]()
            able.append(member)
        except Missing as error:
            lacking[group.name, member] = f"missing: {error}"
        except ToolError as error:
            lacking[group.name, member] = f"failed: {error}"
    return able


def still_needed(group, able, names, lacking):
    """Those of `able` that some name needs whose members can all run."""
    useful = set()
    for name in names:
        where, members = pairs.needs(name)
        if where == group.name and not any((group.name, member) in lacking for member in members):
            useful.update(members)
    return [member for member in able if member in useful]


def run_group(group, members, names, options, clock, lacking):
    """pairs.Measured with a value a block for each member that never failed."""
    values = {member: [] for member in members}
    draw = random.Random(f"{options.seed} {group.name}")
    for block in range(options.blocks):
        members = still_needed(group, members, names, lacking)
        if not members:
            break
        order = members[:]
        draw.shuffle(order)
        clock.say(f"{group.title}: block {block + 1} of {options.blocks}, about {clock.remaining():.0f} s left")
        for member in order:
            began = time.monotonic()
            try:
                values[member].append(group.members[member][1]())
            except Missing as error:
                lacking[group.name, member] = f"missing: {error}"
            except ToolError as error:
                lacking[group.name, member] = f"failed: {error}"
            clock.did(group.seconds, time.monotonic() - began)
            if (group.name, member) in lacking:
                clock.say(f"{group.title}: {member}: {lacking[group.name, member]}")
    complete = {member: found for member, found in values.items() if len(found) == options.blocks}
    return pairs.Measured(complete, group.mtu, group.wait)


def run_all(groups, names, options, say_plan=True):
    """({"pairs", "derived", "skipped"}). Every name is in exactly one of them."""
    wanted = wanted_members(names)
    lacking, able = {}, {}
    for name, members in wanted.items():
        able[name] = check_members(groups[name], members, lacking)
        able[name] = still_needed(groups[name], able[name], names, lacking)
    planned = sum(groups[name].seconds * len(members) * options.blocks for name, members in able.items())
    clock = Clock(planned)
    if say_plan:
        clock.say(f"planned: {planned:.0f} s for {options.blocks} blocks; seed {options.seed}")
    measured = {name: run_group(groups[name], members, names, options, clock, lacking)
                for name, members in able.items() if members}
    found = {"pairs": [], "derived": [], "skipped": []}
    for name in names:
        group, members = pairs.needs(name)
        reasons = [lacking[group, member] for member in members if (group, member) in lacking]
        if reasons:
            found["skipped"].append({"name": name, "reason": reasons[0]})
            continue
        try:
            result = pairs.evaluate(name, measured[group])
        except ValueError as error:
            found["skipped"].append({"name": name, "reason": f"failed: {error}"})
            continue
        found["pairs" if pairs.pair_of(name) else "derived"].append(result)
    return found
