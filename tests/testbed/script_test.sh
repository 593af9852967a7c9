#!/usr/bin/env bash
# What scripts/testbed promises: hosts that are what they are called, errors with a reason, nothing left behind.
#   script_test.sh TESTBED
set -euo pipefail
TESTBED=$1
source "$(dirname "$0")/support.sh"

# Everything that a testbed could have left: namespaces, links, processor limits.
traces() {
  { ip netns list; ip -o link show; ls -d /sys/fs/cgroup/hearsay99-* /sys/fs/cgroup/cpu/hearsay99-* 2>/dev/null; } |
    grep -c hearsay99- || true
}

# Whether the kernel deals the processors to sessions: 1, 0, or nothing where it does not know of that.
sessions=/proc/sys/kernel/sched_autogroup_enabled
by_sessions() { cat $sessions 2>/dev/null || true; }
before=$(by_sessions)

[[ $(traces) -eq 0 ]] || failed "something of testbed 99 was there before"
"$TESTBED" down
passed "down without a testbed does nothing"

ip netns add someone-elses
trap '"$TESTBED" down; ip netns del someone-elses; rm -rf "$folder"' EXIT
"$TESTBED" up 3 100mbit >/dev/null
[[ ! -w $sessions || $(by_sessions) -eq 0 ]] || failed "hosts are sessions that the kernel deals the processors to"
[[ $("$TESTBED" enter h2 hostname) == hearsay99-h2 ]] || failed "h2 is called $("$TESTBED" enter h2 hostname)"
"$TESTBED" slow h3 10mbit
[[ $("$TESTBED" status | awk '$1 == "h1" || $1 == "h3" { printf "%s ", $3 }') == "100mbit 10mbit " ]] ||
  failed "the rates are not as set: $("$TESTBED" status)"
names=$("$TESTBED" run -np 3 -- hostname | sort | tr '\n' ' ')
[[ $names == "hearsay99-h1 hearsay99-h2 hearsay99-h3 " ]] || failed "three ranks ran on '$names'"
names=$("$TESTBED" run -np 4 --per-host 2 -- hostname | sort | uniq -c | awk '{ printf "%s:%s ", $2, $1 }')
[[ $names == "hearsay99-h1:2 hearsay99-h2:2 " ]] || failed "four ranks, two a host, ran on '$names'"
passed "ranks run on the hosts they are dealt to, under their names"

# Processors from somewhere else than taskset, which is what binds; nproc would count OMP_NUM_THREADS.
usable=$(env -u OMP_NUM_THREADS nproc)
allowed=$(grep Cpus_allowed_list /proc/self/status | cut -f 2)
bound=$("$TESTBED" run -np 4 --per-host 2 --bind -- grep Cpus_allowed_list /proc/self/status | cut -f 2 | sort)
[[ $(uniq <<<"$bound" | wc -l) -eq $((usable < 4 ? usable : 4)) && $bound != *[-,]* ]] ||
  failed "four ranks bound to processors of $allowed run on: $bound"
passed "bound ranks stay on one processor each, in turn"

code=0
"$TESTBED" run -np 3 -- sh -c 'exit 5' >/dev/null 2>&1 || code=$?
[[ $code -eq 5 ]] || failed "a program's exit code 5 became $code"
passed "run ends with the program's exit code"

refused 2 "4 ranks do not fit on 3 hosts" "$TESTBED" run -np 4 -- hostname
refused 2 "already" "$TESTBED" up 2 1gbit
refused 2 "no host 'h4'" "$TESTBED" slow h4 10mbit
refused 2 "a rate is" "$TESTBED" slow h1 fast
refused 2 "unknown command" "$TESTBED" start
refused 2 "whole number" "$TESTBED" up 0 1gbit
refused 2 "after --" "$TESTBED" run -np 2 hostname
ip -n hearsay99-h2 link set eth0 down
refused 4 "h2 (198.18.99.2) cannot be reached" "$TESTBED" run -np 3 -- hostname
refused 3 "root" setpriv --reuid=65534 --clear-groups "$TESTBED" status

"$TESTBED" throttle h1 0.5
"$TESTBED" enter h1 'sleep 1000 & sleep 0.1; echo started' >/dev/null
"$TESTBED" down
[[ $(traces) -eq 0 ]] || failed "down has left something: $(ip netns list; ip -o link show)"
[[ $(by_sessions) == "$before" ]] || failed "processors were dealt to sessions: $before, and now $(by_sessions)"
grep -q someone-elses < <(ip netns list) || failed "down has removed a namespace that was not its own"
refused 2 "no testbed" "$TESTBED" run -np 2 -- hostname
passed "down removes everything, running programs included, and nothing else"

# Ctrl-C while hosts are being made. A shell's background jobs ignore it, hence the detour. Again, until it ends: bash
# loses one that comes in the instant in which a command of its has ended.
env --default-signal=INT "$TESTBED" up 100 1gbit >/dev/null 2>&1 &
pid=$!
until grep -q hearsay99-h5 < <(ip netns list); do sleep 0.01; done
while kill -INT "$pid" 2>/dev/null; do sleep 0.2; done
code=0
wait "$pid" || code=$?
[[ $code -eq 130 && $(traces) -eq 0 ]] || failed "after Ctrl-C: exit code $code, $(traces) traces"
passed "Ctrl-C of up leaves nothing behind"
