# What of an MPI job's stderr is worth reading. To be sourced.
# shellcheck shell=bash

# without_boilerplate: stdin to stdout, less what mpirun adds where Hearsay has said in one sentence why it ends
# ("hearsay: …"): that a process called MPI_Abort or ended with another code than 0, in ten lines between two rules.
# Without such a sentence they are all that there is, and come at the end. Whatever else is said passes at once,
# unfinished lines too. That a process was killed, which mpirun says in a block, becomes one line. Where ranks go on
# without the dead (HEARSAY_EXIT_FILE is set), Hearsay says who they are, and what TCP says of them is left out. Where
# MPI gives up while it starts, as it may when a rank dies in that instant, no rank comes to say a sentence or to write
# its exit code: both are done here.
without_boilerplate() {
  local LC_ALL=C line='' text='' shown='' code rule pending='' explained=no started=yes state=open held=''
  local name='(mpirun|prterun)'
  local \
    block="$name detected that one or more processes exited with non-zero status"
  block="^(MPI_ABORT was invoked on rank |Primary job +terminated normally, but |$block)"
  local killed="^$name noticed that process rank ([0-9]+) with PID [0-9]+ on node ([^ ]+) exited on (signal .*)\\.\$"
  local recovery='^\[[^]]+\] PMIX ERROR: BAD-PARAM in file [./a-z_]*pmix_event_notification\.c at line [0-9]+$'
  # The beginning of such a line; the rest of it may be late, for `read` counts its time from when it began to wait.
  local opal='^\[([^]]*$|[^],]+:[0-9]+\] )'
  local hung_up='^(An MPI communication peer process has unexpectedly disconnected|'
  hung_up+='WARNING: Open MPI failed to TCP connect to a peer MPI process)'
  local hung_up_more='^\[[^]]+\] [0-9]+ more process.* help-mpi-btl-tcp\.txt / '
  hung_up_more+='(peer hung up|client connect fail)$'
  [[ -n ${HEARSAY_EXIT_FILE:-} ]] || hung_up='$^' hung_up_more='$^'
  local aggregated='^\[[^]]+\] [0-9]+ more process(es)? ha(s|ve) sent help message help-mpi-api\.txt / mpi-abort$'
  local more='^\[[^]]+\] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages$'
  local no_start='^\[[^]]+\] \*\*\* An error occurred in MPI_Init'
  local sentence='^(\[[0-9]+,[0-9]+\]<stderr>: ?)?hearsay: ' remark='hearsay: (note|warning)'
  trap '' INT TERM HUP # ends with the job, not before it
  rule=$(printf -- '-%.0s' {1..74})
  while :; do
    code=0
    IFS= read -r -t 0.2 line || code=$?
    text+=$line
    if [[ $code -eq 0 ]]; then
      one_line
      text='' shown=''
    elif [[ $code -le 128 ]]; then
      break
    elif [[ $state != @(block|dropped) && ! $text =~ $opal && ($text != "${rule:0:${#text}}" || -n $pending) ]]; then
      printf '%s' "$pending$text" # a pause: nobody is to wait for the rest
      shown+=$text pending='' text=''
    fi
  done
  if [[ $state == block ]]; then held+=$text; else printf '%s' "$pending$text"; fi
  [[ $started == yes ]] || {
    printf 'launch: MPI could not start, for what it says above or because a rank died meanwhile; start the job again\n'
    [[ -z ${HEARSAY_EXIT_FILE:-} ]] || echo 4 >>"$HEARSAY_EXIT_FILE"
  }
  [[ $explained == yes ]] || printf '%s' "$held"
}

# one_line: what becomes of the whole line `text`. It sees the variables of without_boilerplate.
one_line() {
  local n=$'\n'
  if [[ $state == block ]]; then
    held+=$text$n
    [[ $text != "$rule" ]] || state=open
  elif [[ $state == dropped ]]; then
    [[ $text != "$rule" ]] || state=open
  elif [[ -n $pending && $text =~ $hung_up ]]; then
    pending='' state=dropped
  elif [[ $text =~ $hung_up_more || ($state == hung_up && $text =~ $more) ]]; then
    printf '%s' "$pending"
    pending='' state=hung_up
  elif [[ -n $pending && $text =~ $killed ]]; then # whatever others say, this is why
    printf 'launch: rank %s on %s was ended by %s\n' "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}" "${BASH_REMATCH[4]}"
    pending='' state=block explained=yes
  elif [[ -n $pending && $text =~ $block ]]; then
    held+=$pending$text$n pending='' state=block
  elif [[ $text == "$rule" ]]; then
    printf '%s' "$pending"
    pending=$text$n state=open
  elif [[ $text =~ $recovery ]]; then # what Open MPI 4.1 says whenever a process ends under --enable-recovery
    printf '%s' "$pending"
    pending='' state=open
  elif [[ $text =~ $aggregated || ($state == counted && $text =~ $more) ]]; then
    held+=$text$n state=counted
  else
    [[ ! $text =~ $no_start ]] || started=no
    printf '%s' "$pending$text$n"
    pending='' state=open
    [[ ! $shown$text =~ $sentence || $shown$text =~ $remark ]] || explained=yes
  fi
}
