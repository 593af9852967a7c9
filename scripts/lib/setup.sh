# Shared by the scripts of this folder: what must be installed, how to build. To be sourced.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Debian's names; elsewhere the same libraries under other names.
build_packages=(
  build-essential cmake ninja-build ccache git
  libopenmpi-dev openmpi-bin libtorch-dev libopenblas0-pthread  # without it LibTorch multiplies with the reference BLAS
  libboost-dev libeigen3-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev
  zlib1g-dev liblzma-dev libxxhash-dev libprotobuf-dev protobuf-compiler
  libpng-dev libturbojpeg0-dev  # folders of pictures
  libutfcpp-dev  # text data: one file of headers that reads UTF-8
)
report_packages=(python3-numpy python3-pandas python3-matplotlib python3-yaml)  # analysis/
# The Python package; torch, mpi4py: what its tests train with (18 MB to fetch, 110 MB on the disk).
python_packages=(pybind11-dev python3-dev python3-numpy python3-torch python3-mpi4py)
test_packages=(
  doctest-dev librapidcheck-dev libbenchmark-dev libsimgrid-dev mpich libmpich-dev iproute2 clang-format shellcheck
  mypy python3-pip python3-wheel  # the Python package's types, and what pip makes of it
  "${report_packages[@]}" "${python_packages[@]}"
)

say() { printf '\n==> %s\n' "$*"; }

# fail CODE TEXT…
fail() {
  local code=$1
  shift
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "$code"
}

# need_value OPTION COUNT: for options that take a value.
need_value() { [[ $2 -ge 2 ]] || fail 2 "$1 needs a value; see --help"; }

# need_count OPTION VALUE: a whole number from 1 up.
need_count() { [[ $2 =~ ^[1-9][0-9]*$ ]] || fail 2 "$1 must be a whole number from 1 up, not '$2'"; }

is_installed() { [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# install_missing PACKAGE…: installs by apt what is not there; exits with 3 where it cannot.
install_missing() {
  local package missing=() as_root=()
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail 3 "this system has no apt; install what Debian calls '$*', then start again with --no-install."
  fi
  for package in "$@"; do is_installed "$package" || missing+=("$package"); done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null ||
      fail 3 "not root, and sudo is not installed; have an administrator run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "Installing ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get)
  "${as_root[@]}" update --quiet || fail 3 "apt-get update failed; see above."
  "${as_root[@]}" install --yes --quiet --no-install-recommends "${missing[@]}" ||
    fail 3 "apt-get install failed; see above. Needed are: ${missing[*]}"
}

# One compiler a core, but no more than fit: a file that includes LibTorch takes 2 GB.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 2000000)}' /proc/meminfo)
  [[ $memory -ge 1 ]] || memory=1
  echo $((cores < memory ? cores : memory))
}

# build PRESET [-DKEY=VALUE…] [TARGET…]: configures and builds in build/PRESET.
build() {
  local preset=$1 settings=()
  shift
  while [[ ${1:-} == -D* ]]; do settings+=("$1"); shift; done
  say "Building $preset"
  (cd "$root" && cmake --preset "$preset" ${settings[@]+"${settings[@]}"} --log-level=WARNING &&
    cmake --build --preset "$preset" --parallel "$(build_jobs)" ${1:+--target "$@"})
}

# timed WHAT COMMAND…: remembers in `times` how long it took, a line each.
times=''
timed() {
  local start=$SECONDS what=$1 code=0
  shift
  "$@" || code=$?
  times+=$(printf '%4d:%02d  %s' $(((SECONDS - start) / 60)) $(((SECONDS - start) % 60)) "$what")$'\n'
  return "$code"
}
