#!/usr/bin/env bash
# As an engine with remapped ids does (dockerd --userns-remap): root of a user namespace with 65,536 ids, with groups of its
# own bound over those of the machine. Starts a daemon there, makes one call, and ends.
#
#   remapped.sh TOOLCELL FOLDER NAME     a program and an empty folder that everybody can reach, and a name for the groups
set -euo pipefail
readonly PROGRAM=$1 FOLDER=$2 NAME=$3 FIRST=100000
cd /

mkdir "$FOLDER/state"
tops=()
if [ -d /sys/fs/cgroup/memory ]; then
    for controller in memory cpu cpuacct pids freezer; do tops+=("/sys/fs/cgroup/$controller"); done
else
    tops=(/sys/fs/cgroup)
fi
for top in "${tops[@]}"; do
    mkdir -p "$top/$NAME"
    # A process is moved within what was handed over alone (cgroups(7), "Cgroups delegation").
    [ "$top" != /sys/fs/cgroup ] || { mkdir "$top/$NAME/starter" && echo $$ > "$top/$NAME/starter/cgroup.procs"; }
    chown -R "$FIRST:$FIRST" "$top/$NAME"
done
chown "$FIRST:$FIRST" "$FOLDER/state"

# Maps are written from outside, once this process has entered its namespace.
before=$(readlink "/proc/$$/ns/user")
(
    while [ "$(readlink "/proc/$$/ns/user")" = "$before" ]; do sleep 0.01; done
    for map in uid_map gid_map; do echo "0 $FIRST 65536" > "/proc/$$/$map"; done
) &
# shellcheck disable=SC2016 # the inner shells expand these
exec unshare --user --keep-caps --mount --pid --fork --kill-child --mount-proc -- sh -c '
    until grep -q . /proc/self/gid_map; do sleep 0.01; done
    exec setpriv --reuid 0 --regid 0 --clear-groups sh -ec "$@"' sh '
    program=$1 folder=$2 name=$3; shift 3
    mount -t tmpfs run /run
    for top in "$@"; do mount --bind "$top/$name" "$top"; done
    "$program" serve --state "$folder/state" --idle-exit 60 2> /run/log & serve=$!
    for _ in $(seq 600); do [ -S /run/toolcell/toolcell.sock ] && break; kill -0 $serve || { cat /run/log >&2; exit 1; }; sleep 0.05; done
    "$program" run -- sh -c "cat /proc/self/uid_map"
    ls /run/toolcell/uids
    kill $serve
    wait $serve' sh "$PROGRAM" "$FOLDER" "$NAME" "${tops[@]}"
