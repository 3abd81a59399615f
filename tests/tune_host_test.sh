#!/usr/bin/env bash
# tune-host over a fake /proc and /sys: shows, applies, keeps the first saved values, reverts to the byte.
set -uo pipefail

# As an ordinary user, so that a file without write permission really refuses.
if ((EUID == 0)) && [[ -z ${TUNE_HOST_TEST_DIR:-} ]]; then
  command -v setpriv >/dev/null || { echo "SKIP: needs setpriv (util-linux) to drop root"; exit 77; }
  TUNE_HOST_TEST_DIR=$(mktemp -d) || exit 1
  export TUNE_HOST_TEST_DIR
  trap 'rm -rf "$TUNE_HOST_TEST_DIR"' EXIT
  here=$(dirname "$(readlink -f "$0")")
  cp "$here/../scripts/tune-host" "$0" "$TUNE_HOST_TEST_DIR/" || exit 1
  chown -R 65534:65534 "$TUNE_HOST_TEST_DIR"
  if ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$TUNE_HOST_TEST_DIR/tune-host"; then
    echo "SKIP: an ordinary user can't run programs in $TUNE_HOST_TEST_DIR"
    exit 77
  fi
  setpriv --reuid=65534 --regid=65534 --clear-groups bash "$TUNE_HOST_TEST_DIR/$(basename "$0")"
  exit
fi

if [[ -n ${TUNE_HOST_TEST_DIR:-} ]]; then
  tune=$TUNE_HOST_TEST_DIR/tune-host work=$TUNE_HOST_TEST_DIR
else
  tune=$(dirname "$(readlink -f "$0")")/../scripts/tune-host
  work=$(mktemp -d) || exit 1
  trap 'rm -rf "$work"' EXIT
fi

failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
expect_file() { # expect_file PATH CONTENT
  local is
  is=$(cat "$root/$1")
  if [[ $is != "$2" ]]; then fail "$1 is '$is', expected '$2'"; fi
}
expect_exit() { # expect_exit CODE ARGUMENTS…: runs tune-host; output in $out
  local want=$1 code=0
  shift
  out=$("$tune" --root "$root" "$@" 2>&1) || code=$?
  if ((code != want)); then fail "tune-host $*: exit $code, expected $want: $out"; fi
}
expect_out() { if [[ $out != *"$1"* ]]; then fail "output lacks '$1': $out"; fi; }
put() { mkdir -p "$(dirname "$root/$1")" && printf '%s\n' "$2" >"$root/$1"; }
contents() { (cd "$root" && find proc sys -type f | sort | xargs sha256sum); }

# A machine with 4 CPUs, a governor each, three idle states, and a NIC with two interrupts.
make_tree() {
  root=$(mktemp -d -p "$work")
  local c
  put sys/devices/system/cpu/online 0-3
  for c in 0 1 2 3; do
    put "sys/devices/system/cpu/cpu$c/cpufreq/scaling_governor" powersave
    put "sys/devices/system/cpu/cpu$c/cpufreq/scaling_available_governors" "performance powersave"
    put "sys/devices/system/cpu/cpu$c/cpuidle/state0/latency" 0
    put "sys/devices/system/cpu/cpu$c/cpuidle/state0/disable" 0
    put "sys/devices/system/cpu/cpu$c/cpuidle/state1/latency" 10
    put "sys/devices/system/cpu/cpu$c/cpuidle/state1/disable" 0
    put "sys/devices/system/cpu/cpu$c/cpuidle/state2/latency" 133
    put "sys/devices/system/cpu/cpu$c/cpuidle/state2/disable" 0
  done
  put sys/devices/system/cpu/cpu3/cpufreq/scaling_governor performance
  put sys/class/net/eth9/device/msi_irqs/40 msix
  put sys/class/net/eth9/device/msi_irqs/41 msix
  put proc/irq/40/smp_affinity_list 0-3
  put proc/irq/41/smp_affinity_list 2
  put proc/sys/net/core/rmem_max 212992
  put proc/sys/net/core/wmem_max 33554432
  put proc/sys/net/core/netdev_budget 300
  put proc/sys/net/core/netdev_max_backlog 10000
  put proc/sys/net/core/busy_poll 0
  put proc/sys/kernel/numa_balancing 1
}
saved=var/lib/fsbl/tune-host.saved

# Goal: showing names every setting, says why one is missing, and changes nothing.
make_tree
before=$(contents)
expect_exit 0
expect_out "powersave (3), performance (1)"
expect_out "missing: not in this kernel or network namespace"
expect_out "missing: give --nic and --load-cpus"
[[ $(contents) == "$before" && ! -e $root/$saved ]] || fail "showing changed something"

# Goal: --apply sets what is not as wanted and only that.
expect_exit 0 --apply --nic eth9 --load-cpus 1-2 --busy-poll-us 50
expect_file sys/devices/system/cpu/cpu0/cpufreq/scaling_governor performance
expect_file sys/devices/system/cpu/cpu1/cpuidle/state2/disable 1
expect_file sys/devices/system/cpu/cpu1/cpuidle/state1/disable 0
expect_file proc/irq/40/smp_affinity_list 0,3
expect_file proc/irq/41/smp_affinity_list 0,3
expect_file proc/sys/net/core/rmem_max 16777216
expect_file proc/sys/net/core/wmem_max 33554432
expect_file proc/sys/net/core/netdev_budget 600
expect_file proc/sys/net/core/busy_poll 50
expect_file proc/sys/kernel/numa_balancing 0
[[ ! -e $root/proc/sys/kernel/nmi_watchdog ]] || fail "a missing knob was made"

if grep -Eq 'wmem_max|netdev_max_backlog|cpu3/cpufreq' "$root/$saved"; then fail "saved what was as wanted"; fi

# Goal: applying again changes nothing and keeps the first saved values, also when something else moved a knob.
first=$(cat "$root/$saved")
applied=$(contents)
expect_exit 0 --apply --nic eth9 --load-cpus 1-2 --busy-poll-us 50
[[ $(contents) == "$applied" ]] || fail "the second --apply changed something"
put proc/sys/net/core/rmem_max 4096
expect_exit 0 --apply
[[ $(cat "$root/$saved") == "$first" ]] || fail "the second --apply saved other values"

# Goal: --revert restores every byte and forgets; reverting again is no error.
expect_exit 0 --revert
[[ $(contents) == "$before" ]] || fail "--revert left differences: $(diff <(echo "$before") <(contents))"
[[ ! -e $root/$saved ]] || fail "--revert left the state file"
expect_exit 0 --revert
expect_out "nothing to revert"

# Goal: a knob that refuses is named, the others are still set, and revert does not stumble over it.
make_tree
before=$(contents)
chmod a-w "$root/proc/sys/net/core/rmem_max"
expect_exit 4 --apply --state "$root/state"
expect_out "/proc/sys/net/core/rmem_max: could not set 16777216"
expect_out "could not be changed: 1"
expect_file proc/sys/net/core/rmem_max 212992
expect_file proc/sys/kernel/numa_balancing 0
if grep -q rmem_max "$root/state"; then fail "a change that failed was saved"; fi
expect_exit 0 --revert --state "$root/state"
[[ $(contents) == "$before" ]] || fail "--revert after a refusal left differences"

# Goal: a knob that can't be read is named and left alone: it could not be put back.
chmod 0200 "$root/proc/sys/net/core/netdev_budget"
expect_exit 4 --apply --busy-poll-us 50
chmod 0600 "$root/proc/sys/net/core/netdev_budget"
expect_out "/proc/sys/net/core/netdev_budget: can't be read"
expect_file proc/sys/net/core/netdev_budget 300
expect_exit 0 --revert
[[ $(contents) == "$before" ]] || fail "--revert after an unreadable knob left differences"

# Goal: what can't be put back stays saved, and a later --revert finishes.
expect_exit 4 --apply
chmod a-w "$root/proc/sys/kernel/numa_balancing"
expect_exit 4 --revert
expect_out "/proc/sys/kernel/numa_balancing: could not set 1"
[[ $(cat "$root/$saved") == $'/proc/sys/kernel/numa_balancing\t1' ]] || fail "state after a partial revert"
chmod u+w "$root/proc/sys/kernel/numa_balancing"
expect_exit 0 --revert
[[ $(contents) == "$before" ]] || fail "the second --revert left differences"

# Goal: a user who may change nothing is told so before anything is written.
chmod -R a-w "$root/proc" "$root/sys"
expect_exit 4 --apply
expect_out "sudo"
[[ ! -e $root/$saved ]] || fail "a refused --apply wrote a state file"
chmod -R u+w "$root/proc" "$root/sys"

# Goal: where previous values can't be saved, nothing is changed.
expect_exit 4 --apply --state "$root/proc/irq/40/smp_affinity_list/state"
[[ $(contents) == "$before" ]] || fail "changed without saving"

# Goal: a state file that names other files is refused as a whole.
for bad in "/etc/passwd"$'\t'"x" "/proc/sys/kernel/../../etc/x"$'\t'"1" "/proc/sys/kernel/numa_balancing"; do
  printf '/proc/sys/kernel/numa_balancing\t0\n%s\n' "$bad" >"$root/state"
  expect_exit 2 --revert --state "$root/state"
  [[ $(contents) == "$before" ]] || fail "a bad state file was acted on: $bad"
done

# Goal: no CPU left, or a device without interrupts, is said and not guessed.
expect_exit 0 --nic eth9 --load-cpus 0-3
expect_out "missing: no CPU is left beside the load CPUs"
mkdir -p "$root/sys/class/net/veth9"
expect_exit 0 --nic veth9 --load-cpus 1
expect_out "missing: veth9 has no interrupts of its own"

# Goal: bad usage is exit 2.
for arguments in --what "--apply --revert" --nic "--nic eth9" "--load-cpus 1" "--nic nope --load-cpus 1" \
  "--nic ../eth9 --load-cpus 1" "--nic eth9 --load-cpus 1-" "--nic eth9 --load-cpus x" "--busy-poll-us -1" \
  "--max-exit-latency-us 1.5"; do
  # shellcheck disable=SC2086 # words on purpose
  expect_exit 2 $arguments
done

if ((failures > 0)); then exit 1; fi
echo "tune-host: all goals met"
