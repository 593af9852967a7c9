# What scripts/testbed is made of: hosts out of network namespaces, and mpirun on them. To be sourced after setup.sh.
# shellcheck shell=bash

testbed=${HEARSAY_TESTBED:-0}
[[ $testbed =~ ^([0-9]|[1-9][0-9])$ ]] || fail 2 "HEARSAY_TESTBED must be a number from 0 to 99, not '$testbed'"
prefix=hearsay$testbed
bridge=$prefix-br
subnet=198.18.$testbed # of the range that RFC 2544 sets aside for benchmarks: nobody's real network
launcher=$subnet.254   # this machine's own address, where mpirun is reached

segment_bytes=16000 # the longest run of frames that the kernel sends as one
bucket_bytes=20000

host_prefix=$prefix-h # of a host's namespace, before its number
port_prefix=$prefix-p # of the switch's end of its cable

# How many hosts there are: they are numbered without gaps.
host_count() { ip netns list 2>/dev/null | awk -v p="$host_prefix" 'index($1, p) == 1' | wc -l; }

need_rate() { [[ $1 =~ ^[1-9][0-9]*[kmg]bit$ ]] || fail 2 "a rate is a whole number of kbit, mbit or gbit, not '$1'"; }

# need_host NAME: h1 … hN.
need_host() {
  local hosts
  hosts=$(host_count)
  [[ $hosts -gt 0 ]] || fail 2 "there is no testbed; make one: scripts/testbed up 4 1gbit"
  [[ $1 =~ ^h[1-9][0-9]*$ && ${1#h} -le $hosts ]] || fail 2 "there is no host '$1'; hosts are h1 to h$hosts"
}

require_root() {
  command -v ip >/dev/null && command -v tc >/dev/null || fail 3 "ip or tc is missing; install the package iproute2"
  [[ $EUID -eq 0 ]] || fail 3 "network namespaces need root; start it with sudo"
}

require_permission() {
  require_root
  local probe=$prefix-probe words
  words=$( (ip netns add "$probe" && ip netns exec "$probe" unshare --uts true &&
    ip link add "$prefix-a" type veth peer name "$prefix-b" &&
      tc qdisc add dev "$prefix-a" root tbf rate 1mbit burst 64kb \
      latency 50ms && ip link add "$bridge-x" type bridge) 2>&1) || words=${words:-unknown reason}
  ip link del "$bridge-x" 2>/dev/null || true
  ip link del "$prefix-a" 2>/dev/null || true
  ip netns del "$probe" 2>/dev/null || true
  [[ -z $words ]] || fail 3 "this machine does not permit network namespaces, virtual links or token buckets: $words"
}

make_switch() {
  ip link add "$bridge" type bridge
  echo 1 2>/dev/null >"/proc/sys/net/ipv6/conf/$bridge/disable_ipv6" || true
  ip address add "$launcher/24" dev "$bridge"
  ip link set "$bridge" up
  share_processors_evenly
}

# Hosts share this machine's processors. Where the kernel deals them to sessions (autogroup), each host is one, and a
# thread that asks for a short time slice comes after the whole slices of all other hosts: copies were 20 times as old.
# So that is off while there is a testbed; its switch remembers whether it was on.
sessions=/proc/sys/kernel/sched_autogroup_enabled
share_processors_evenly() {
  local dealt=0
  [[ ! -w $sessions ]] || read -r dealt <$sessions
  [[ $dealt == 1 ]] || return 0
  { echo 0 >$sessions; } 2>/dev/null || return 0
  ip link set "$bridge" alias autogroup
}
# The last testbed gives back what was; before, another one remembers it.
deal_to_sessions_again() {
  [[ $(ip link show "$bridge" 2>/dev/null) == *"alias autogroup"* ]] || return 0
  local other
  other=$(ip -o link show type bridge | sed -nE 's/^[0-9]+: (hearsay[0-9]+-br):.*/\1/p' | grep -vxm1 "$bridge") || true
  if [[ -n $other ]]; then ip link set "$other" alias autogroup; else echo 1 >$sessions; fi
}

# make_host NUMBER RATE. What `up` calls has no command substitutions: a signal that comes while bash 5.2 reads one ends
# its trap with a syntax error, and `up` with another exit code than the signal's.
make_host() {
  local host=$host_prefix$1 port=$port_prefix$1
  ip netns add "$host"
  ip link add "$port" type veth peer name eth0 netns "$host"
  # IPv6 talks of its own accord, which would be counted.
  ip netns exec "$host" bash -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6' 2>/dev/null || true
  ip link set "$port" master "$bridge" up
  ip -n "$host" link set lo up
  ip -n "$host" address add "$subnet.$1/24" dev eth0
  ip -n "$host" link set eth0 gso_max_size $segment_bytes up
  set_rate "$1" "$2"
}

# set_rate NUMBER RATE: in both directions. The bucket holds little more than one segment as the kernel hands it over,
# so that even a message of 64 kB travels at the rate; what waits longer than 50 ms is dropped, as a switch would.
set_rate() {
  ip netns exec "$host_prefix$1" tc qdisc replace dev eth0 root tbf rate "$2" burst $bucket_bytes latency 50ms
  tc qdisc replace dev "$port_prefix$1" root tbf rate "$2" burst $bucket_bytes latency 50ms
}

# The folder of a host's processor limit: cgroup version 1 or 2, whichever this machine has.
limit_folder() {
  local base=/sys/fs/cgroup
  [[ -d $base/cpu ]] && base=$base/cpu
  echo "$base/$host_prefix$1"
}

# throttle NUMBER CORES: CORES of the processor for what is started on the host from now on; `off` lifts it.
throttle() {
  local folder period=20000 quota
  folder=$(limit_folder "$1")
  if [[ $2 == off ]]; then
    [[ ! -d $folder ]] || rmdir "$folder" || fail 3 "processes still run on h$1; end them first"
    return
  fi
  mkdir -p "$folder" || fail 3 "this machine does not permit processor limits (cgroups)"
  quota=$(awk -v cores="$2" -v period="$period" 'BEGIN { printf "%d", cores * period }')
  [[ $quota -ge 1000 ]] || fail 2 "at least 0.05 cores"
  if [[ -e $folder/cpu.cfs_quota_us ]]; then
    echo "$period" >"$folder/cpu.cfs_period_us"
    echo "$quota" >"$folder/cpu.cfs_quota_us"
  else
    echo "$quota $period" >"$folder/cpu.max" || fail 3 "this machine does not permit processor limits (cgroups)"
  fi
}

# enter HOST COMMAND…: as ssh would, the command is a line for a shell. This is mpirun's launch agent.
enter() {
  local host=$1 folder
  shift
  folder=$(limit_folder "${host#h}")
  [[ ! -d $folder ]] || echo $BASHPID >"$folder/cgroup.procs"
  # shellcheck disable=SC2016  # expanded by the inner shell
  exec ip netns exec "$host_prefix${host#h}" unshare --uts \
    bash -c 'hostname "$0" && exec bash -c "$*"' "$prefix-$host" "$@"
}

# require_reachable HOSTS: the first of them answer. A refused connection is an answer.
require_reachable() {
  local k words
  for ((k = 1; k <= $1; ++k)); do
    words=$(timeout 2 bash -c "exec 3<>/dev/tcp/$subnet.$k/9" 2>&1) && continue
    [[ $words == *refused* ]] ||
      fail 4 \
        "host h$k ($subnet.$k) cannot be reached: no answer within 2 s. Is its link up? 'testbed down' and 'up' mend it"
  done
}

# The processors that this shell may use, one a line.
processors() {
  local first last
  taskset -cp $$ | sed 's/.*: //' | tr , '\n' | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done
}

# What to put before a program's name so that rank r stays on the r-th of these processors, counted round: a word a
# line.
binding() {
  # shellcheck disable=SC2016  # expanded on the host, where a rank is known
  printf '%s\n' bash -c 'cpus=($0); exec taskset -c "${cpus[OMPI_COMM_WORLD_RANK % ${#cpus[@]}]}" "$@"' \
    "$(processors | tr '\n' ' ')"
}

# start RANKS PER_HOST HOSTS OSC [MPIRUN OPTIONS…] -- PROGRAM…
start() {
  local ranks=$1 per_host=$2 hosts=$3 osc=$4 list='' options=() k
  shift 4
  while [[ $1 != -- ]]; do options+=("$1"); shift; done
  shift
  for ((k = 1; k <= hosts; ++k)); do list+=${list:+,}h$k:$per_host; done
  if [[ $osc == ucx ]]; then
    options+=(--mca osc ucx -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)
  else
    options+=(--mca osc ^ucx)
  fi
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # a testbed belongs to root
  export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
  # Hosts share cores, which mpirun cannot know: hence the yielding. One minute is plenty for a host's daemon to answer.
  exec mpirun -np "$ranks" --host "$list" --map-by slot --bind-to none \
    --mca plm_rsh_agent "$root/scripts/testbed enter" --mca plm_rsh_no_tree_spawn 1 --mca orte_startup_timeout 60 \
    --mca oob_tcp_if_include "$subnet.0/24" --mca btl_tcp_if_include "$subnet.0/24" \
    --mca pml ob1 --mca btl tcp,self --mca mpi_yield_when_idle 1 "${options[@]}" -- "$@"
}

# A line a host: what its interface has sent and received, as the kernel counts, with Ethernet headers.
status() {
  local hosts k
  hosts=$(host_count)
  [[ $hosts -gt 0 ]] || { echo "no testbed"; return; }
  printf '%-6s %-15s %-10s %-8s %16s %16s\n' host address rate cores sent_bytes received_bytes
  for ((k = 1; k <= hosts; ++k)); do
    printf '%-6s %-15s %-10s %-8s %16s %16s\n' "h$k" "$subnet.$k" "$(rate_of "$k")" "$(cores_of "$k")" \
      "$(counter "$k" tx_bytes)" "$(counter "$k" rx_bytes)"
  done
}

counter() { ip netns exec "$host_prefix$1" cat "/sys/class/net/eth0/statistics/$2"; }
rate_of() { tc qdisc show dev "$port_prefix$1" | sed -nE 's/.* rate ([0-9]+[KMG]bit).*/\1/p' | tr KMG kmg; }
cores_of() {
  local folder
  folder=$(limit_folder "$1")
  if [[ -e $folder/cpu.cfs_quota_us ]]; then
    awk -v period="$(cat "$folder/cpu.cfs_period_us")" '{ print $1 / period }' "$folder/cpu.cfs_quota_us"
  elif [[ -e $folder/cpu.max ]]; then
    awk '{ print $1 / $2 }' "$folder/cpu.max"
  else
    echo all
  fi
}

# Removes hosts, cables and switch, and ends what still runs on the hosts.
tear_down() {
  local host pids
  for host in $(ip netns list | awk -v p="$host_prefix" 'index($1, p) == 1 { print $1 }'); do
    pids=$(ip netns pids "$host")
    # shellcheck disable=SC2086  # one word a process
    [[ -z $pids ]] || { kill -KILL $pids 2>/dev/null || true; sleep 0.2; }
    ip netns del "$host"
    [[ ! -d $(limit_folder "${host#"$host_prefix"}") ]] || rmdir "$(limit_folder "${host#"$host_prefix"}")" || true
  done
  for host in $(ip -o link show | sed -nE "s/^[0-9]+: (${port_prefix}[0-9]+)@.*/\1/p"); do
    ip link del "$host" 2>/dev/null || true
  done
  deal_to_sessions_again
  ip link del "$bridge" 2>/dev/null || true
}
