# Shared by the scripts of this folder: what must be installed, how to build. To be sourced.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Debian's names; elsewhere the same libraries under other names.
build_packages=(
  build-essential cmake ninja-build ccache git
  libopenmpi-dev openmpi-bin libtorch-dev libopenblas0-pthread  # without it LibTorch multiplies with the reference BLAS
  libboost-dev libeigen3-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev
  zlib1g-dev liblzma-dev libxxhash-dev libprotobuf-dev protobuf-compiler
  libssl-dev  # libcrypto: proofs of members of a job
  libpng-dev libturbojpeg0-dev  # folders of pictures
  libutfcpp-dev  # text data: one file of headers that reads UTF-8
)
report_packages=(python3-numpy python3-pandas python3-matplotlib python3-yaml)  # analysis/
python_packages=(pybind11-dev python3-dev python3-numpy python3-torch) # the package, and loops in PyTorch
test_packages=(
  doctest-dev librapidcheck-dev libbenchmark-dev libsimgrid-dev mpich libmpich-dev iproute2 clang-format shellcheck
  mypy python3-pip python3-wheel python3-mpi4py  # the Python package's types, what pip makes of it, jobs of mpi4py
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
    sudo -n true 2>/dev/null || [[ -t 0 ]] ||
      fail 3 "sudo wants a password, and there is no terminal; have an administrator run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "Installing ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get)
  "${as_root[@]}" update --quiet -o APT::Update::Error-Mode=any ||
    say "Not every list of packages could be fetched, see above; those that are there have to do"
  "${as_root[@]}" install --simulate --quiet=2 --no-install-recommends "${missing[@]}" >/dev/null ||
    fail 3 "apt cannot install ${missing[*]}; see above. No network, or another distribution than Debian 12? Install" \
      "these libraries by hand, then start again with --no-install"
  "${as_root[@]}" install --yes --quiet --no-install-recommends "${missing[@]}" ||
    fail 3 "apt-get install failed; see above. Needed are: ${missing[*]}"
}

# memory_mb: what processes may still take, of this machine or of this container.
memory_mb() {
  local free limit
  free=$(awk '/^(MemAvailable|SwapFree):/ { sum += $2 } END { print int(sum / 1000) }' /proc/meminfo)
  for limit in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
    limit=$(cat "$limit" 2>/dev/null) || continue
    [[ ! $limit =~ ^[0-9]{1,15}$ || $((limit / 1000000)) -ge $free ]] || free=$((limit / 1000000))
  done
  echo "$free"
}

# One compiler a core, but no more than fit: a file that includes LibTorch takes 2 GB.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(($(memory_mb) / 2000))
  [[ $memory -ge 1 ]] || memory=1
  echo $((cores < memory ? cores : memory))
}

# build PRESET [-DKEY=VALUE…] [TARGET…]: configures and builds in build/PRESET. TARGET?: if this build has it.
build() {
  local preset=$1 settings=() targets=() known
  shift
  while [[ ${1:-} == -D* ]]; do settings+=("$1"); shift; done
  say "Building $preset"
  (
    cd "$root" || exit
    cmake --preset "$preset" ${settings[@]+"${settings[@]}"} --log-level=WARNING || exit
    known=$(cmake --build --preset "$preset" --target help) || exit
    for target in "$@"; do [[ $target == *'?' && $known != *"${target%?}:"* ]] || targets+=("${target%'?'}"); done
    cmake --build --preset "$preset" --parallel "$(build_jobs)" ${targets[@]+--target "${targets[@]}"}
  )
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

# make_torch2_python: the virtual environment of the preset torch2, with the newest torch and numpy of Python's index.
make_torch2_python() {
  local folder=$root/build/torch2-python
  if [[ ! -d $folder/torch/ ]]; then
    python3 -m venv "$folder" || return 1
    "$folder/bin/pip" install --quiet --disable-pip-version-check --retries 1 torch numpy || return 1
    ln -sfn "$("$folder/bin/python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')" "$folder/torch"
  fi
}
