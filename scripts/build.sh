# shellcheck shell=bash
# Sourced by run-suite, fsbl-bench.sh and test: builds a preset, and gives files made under sudo back to the user.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The commit stands in every result; git refuses to name it when root builds in another user's clone.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="$top"

# Compilers at once: one per core, and at least 1.5 GB of memory for each.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1500000)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# build PRESET FOLDER [CMAKE-OPTION...] [-- TARGET...]
build() {
  local preset=$1 folder=$2 options=() targets=()
  shift 2
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  [ $# -eq 0 ] || { shift; [ $# -eq 0 ] || targets=(--target "$@"); }
  if [ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ] && command -v ccache >/dev/null; then
    options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  if { [ -e "$folder" ] && ! [ -w "$folder" ]; } || ! mkdir -p "$folder"; then
    echo "build $preset: cannot write $folder; remove it or give it to this user: sudo chown -R $(id -un) $top/build" >&2
    return 5
  fi
  echo "building $preset in ${folder#"$top"/}" >&2
  (cd "$top" && cmake --preset "$preset" -B "$folder" --log-level=NOTICE "${options[@]}") >&2 || return 5
  cmake --build "$folder" -j "$(build_jobs)" "${targets[@]}" >&2 || return 5
}

# hand_back PATH...: what root made there under sudo belongs to the user who called sudo.
hand_back() {
  [ "$(id -u)" -eq 0 ] && [ -n "${SUDO_UID:-}" ] && [ -n "${SUDO_GID:-}" ] || return 0
  local path
  for path in "$@"; do
    [ -e "$path" ] || continue
    find "$path" -xdev -uid 0 -exec chown -h "$SUDO_UID:$SUDO_GID" {} +
  done
}

# build_suite SETUP-OPTION...: what a run needs, in a folder apart from the one that the tests use; sets $fsbl.
build_suite() {
  "$top/scripts/setup" "$@" || return
  build release "$top/build/suite" -DFSBL_TESTS=OFF || return
  # shellcheck disable=SC2034  # read by those who source this
  fsbl=$top/build/suite/bin/fsbl
}
