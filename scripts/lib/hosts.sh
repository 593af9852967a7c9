# What must be true of hosts before mpirun is started on them. To be sourced after setup.sh.
# HOSTS is a line "NAME SLOTS" for each host; SLOTS is "?" where only the host knows: as many as it has cores. WHERE is
# what messages call the place that they stand in.
# shellcheck shell=bash

# hosts_of_file FILE: HOSTS, as Open MPI 4.1 reads it: slots= (count=, cpu=) and one for every further line of that
# host; else one for every line; else max_slots=; else "?".
hosts_of_file() {
  local name _
  [[ -r $1 ]] || fail 3 "the host file '$1' cannot be read"
  ! LC_ALL=C grep -q $'^\xef\xbb\xbf\\|\r\\|\xff\xfe' "$1" ||
    fail 3 \
      "the host file '$1' has a byte order mark or line ends of Windows, which mpirun does not read; take them out:" \
      "sed -i '1s/^\\xef\\xbb\\xbf//; s/\\r\$//' '$1'"
  while read -r name _ || [[ -n $name ]]; do # the last line may have no end
    name=${name%%#*}
    [[ -z $name ]] || is_host_name "$name" ||
      fail 2 "the host file '$1': '${name//[^[:print:]]/?}' is no name of a host: letters, digits, '.' and '-'"
  done <"$1"
  awk '{ sub(/#.*/, ""); gsub(/ *= */, "=") }
       NF { if (!($1 in lines)) order[++n] = $1
            ++lines[$1]
            for (i = 2; i <= NF; ++i) {
              split($i, option, "=")
              if ($i ~ /^(slots|count|cpu)=[0-9]+$/) slots[$1] = option[2]
              if ($i ~ /^max[-_]slots=[0-9]+$/) most[$1] = option[2] } }
       END { for (i = 1; i <= n; ++i) {
               host = order[i]
               if (host in slots) print host, slots[host] + lines[host] - 1
               else if (lines[host] > 1) print host, lines[host]
               else print host, (host in most ? most[host] : "?") } }' "$1"
}

# hosts_of_list LIST: HOSTS of mpirun's --host, as Open MPI 4.1 reads it: NAME is one slot, NAME:N is N, NAME:* and
# NAME:auto one for each core; a host that is named again has the sum.
hosts_of_list() {
  local item name slots order=() counted=''
  local -A sum=()
  while read -r item; do
    name=${item%%:*} slots=1
    [[ $item != *:* ]] || slots=${item#*:}
    [[ $slots != '*' && $slots != auto ]] || slots='?'
    is_host_name "$name" && [[ $slots =~ ^([1-9][0-9]*|\?)$ ]] ||
      fail 2 \
        "--host $1: '$item' is none of NAME, NAME:SLOTS and NAME:*; a comma between hosts: --host node01:4,node02:4"
    [[ -n ${sum[$name]:-} ]] || order+=("$name")
    if [[ $slots == '?' ||
      ${sum[$name]:-} == '?' ]]; then sum[$name]='?'; else sum[$name]=$((${sum[$name]:-0} + slots)); fi
  done <<<"${1//,/$'\n'}"
  for name in "${order[@]}"; do counted+="$name ${sum[$name]}"$'\n'; done
  printf '%s' "$counted"
}

# is_host_name NAME: what may stand where ssh expects a host, USER@ before it or not: no option, no word of a shell.
is_host_name() { [[ $1 =~ ^([[:alnum:]][[:alnum:]._-]*@)?[[:alnum:]][[:alnum:]._:%-]*$ ]]; }

# slots_needed RANKS [OPTIONS of mpirun…]: a slot a process, unless mpirun is allowed to do with fewer.
slots_needed() {
  local option
  for option in "${@:2}" "${OMPI_MCA_rmaps_base_oversubscribe:+oversubscribe}"; do
    case ${option,,} in
      *nooversubscribe*) ;;
      *oversubscribe*) echo 1; return ;;
    esac
  done
  echo "$1"
}

# cores_command [OPTIONS of mpirun…]: a line for a host's shell that prints how many slots it has where the file does
# not say. Open MPI counts cores, or threads of the hardware if told so; nproc would obey OMP_NUM_THREADS instead.
cores_command() {
  local unit=core,socket
  [[ "$* ${OMPI_MCA_hwloc_base_use_hwthreads_as_cpus:+use-hwthread}" != *use?hwthread* ]] || unit=cpu
  echo "lscpu -p=$unit | grep -v '^#' | sort -u | wc -l"
}

# require_slots WHERE RANKS HOSTS: as many as HOSTS itself tells of. Where only hosts know, require_hosts asks them.
require_slots() {
  [[ -n $3 ]] || fail 2 "$1 names no host; a line is: node01 slots=4"
  [[ $3 == *'?'* ]] || require_sum "$@"
}

# require_sum WHERE RANKS HOSTS: the slots are enough.
require_sum() {
  local total
  total=$(awk '{ sum += $2 } END { print sum }' <<<"$3")
  [[ $total -ge $2 ]] ||
    fail 2 \
      "$1 has $total slots ($(paste -sd, <<<"$3" | sed 's/,/, /g')), too few for $2 processes; raise the number there" \
      "(slots=4 in a host file, node01:4 with --host), add hosts, or start at most $total"
}

# require_hosts WHERE RANKS PROGRAM CORES HOSTS: every host answers the launch agent, has the program where this machine
# has it, and all together have slots enough. CORES is cores_command's.
require_hosts() {
  local host slots agent look words counted=''
  read -r -a agent <<<"${OMPI_MCA_plm_rsh_agent:-ssh -o BatchMode=yes -o ConnectTimeout=10 --}"
  look=$(printf '(cd %q && command -v %q) >/dev/null || exit 9; echo cores=$(%s)' "$PWD" "$3" "$4")
  while read -r host slots <&3; do
    if is_this_machine "$host"; then
      words=cores=$(bash -c "$4")
    else
      words=$(asked "$1" "$host" "$3" "$look") || exit
    fi
    [[ $slots != '?' ]] || slots=$(sed -nE 's/^cores=([1-9][0-9]*)$/\1/p' <<<"$words" | tail -n 1)
    counted+="$host ${slots:-?}"$'\n'
  done 3<<<"$5"
  # A host without lscpu cannot tell; then mpirun has the last word.
  [[ $counted == *'?'* ]] || require_sum "$1" "$2" "${counted%$'\n'}"
}

# asked WHERE HOST PROGRAM LOOK: what the host says to the shell line LOOK. Its exit code is the script's.
asked() {
  local words code=0
  words=$(timeout 15 "${agent[@]}" "$2" "$4" 2>&1 </dev/null) || code=$?
  case $code in
    0) echo "$words" ;;
    9) fail 3 "the host '$2' of $1 has no program '$3' in $PWD; put it there, on every host the same" ;;
    *) fail 4 "the host '$2' of $1 cannot be reached (${words:-no answer in 15 s}); try: ${agent[*]} $2 true" ;;
  esac
}

is_this_machine() { [[ $1 == localhost || $1 == 127.0.0.1 || $1 == "$(hostname)" ||
  $1 == "$(hostname -f 2>/dev/null)" ]]; }
