# What must be true of the hosts of a host file before mpirun is started on them. To be sourced behind setup.sh.
# shellcheck shell=bash

# hosts_of FILE: a line "NAME SLOTS" for each host, as Open MPI 4.1 reads it: slots=, else a slot for each time that the name
# stands there, and "?" if that is once: it then takes the cores of the host, which only the host knows.
hosts_of() {
  awk '{ sub(/#.*/, ""); gsub(/ *= */, "=") }
       NF { if (!($1 in lines)) order[++n] = $1
            ++lines[$1]
            for (i = 2; i <= NF; ++i) if ($i ~ /^slots=[0-9]+$/) slots[$1] = substr($i, 7) }
       END { for (i = 1; i <= n; ++i) {
               host = order[i]
               if (host in slots) print host, slots[host]
               else print host, (lines[host] > 1 ? lines[host] : "?") } }' "$1"
}

# require_slots FILE RANKS
require_slots() {
  local hosts total
  [[ -r $1 ]] || fail 3 "the host file '$1' cannot be read"
  hosts=$(hosts_of "$1")
  [[ -n $hosts ]] || fail 2 "the host file '$1' names no host; a line is: node01 slots=4"
  [[ $hosts != *'?'* ]] || return 0
  total=$(awk '{ sum += $2 } END { print sum }' <<<"$hosts")
  [[ $total -ge $2 ]] ||
    fail 2 "the host file '$1' has $total slots ($(paste -sd, <<<"$hosts" | sed 's/,/, /g')), too few for" \
      "$2 processes; raise slots= there, add hosts, or start at most $total"
}

# require_hosts FILE PROGRAM: every host answers the launch agent and has the program where this machine has it.
require_hosts() {
  local host agent look words code
  read -r -a agent <<<"${OMPI_MCA_plm_rsh_agent:-ssh -o BatchMode=yes -o ConnectTimeout=10}"
  look=$(printf '(cd %q && command -v %q) >/dev/null || exit 9' "$PWD" "$2")
  while read -r host _ <&3; do
    ! is_this_machine "$host" || continue
    code=0
    words=$(timeout 15 "${agent[@]}" "$host" "$look" 2>&1 </dev/null) || code=$?
    case $code in
      0) ;;
      9) fail 3 "the host '$host' of '$1' has no program '$2' in $PWD; put it there, on every host the same" ;;
      *) fail 4 "the host '$host' of '$1' cannot be reached (${words:-no answer in 15 s}); try: ${agent[*]} $host true" ;;
    esac
  done 3< <(hosts_of "$1")
}

is_this_machine() { [[ $1 == localhost || $1 == 127.0.0.1 || $1 == "$(hostname)" || $1 == "$(hostname -f 2>/dev/null)" ]]; }
