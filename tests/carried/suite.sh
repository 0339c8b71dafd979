#!/bin/sh
# Runs the suite's core on a machine that it was carried to, with these words on the test binary's command line, and
# prints what src/carried.rs reads. TOOLCELL_TESTS_THREADS says how many tests at once.
export TOOLCELL_BIN=/suite/toolcell TOOLCELL_TESTS_DIR=/var/tmp/toolcell-tests
export TOOLCELL_TESTS_PROGRAMS=/suite/programs TOOLCELL_TESTS_PROBES=/suite/probes
cd / || exit 1
echo "machine: Linux $(uname -r), user $(id -u), cgroups $(cat /sys/fs/cgroup/cgroup.controllers 2> /dev/null || echo version 1)," \
    "LSM $(cat /sys/kernel/security/lsm 2> /dev/null)"
/suite/e2e --test-threads "${TOOLCELL_TESTS_THREADS:-$(($(nproc) * 2))}" "$@" --skip own_machine::
suite=$?
# What changes the machine itself, its clock for one, runs last and alone, and only where it is the suite's own.
case "${TOOLCELL_TESTS_OWN_MACHINE:-0} $*" in
    1*own_machine::*) /suite/e2e --test-threads 1 own_machine:: || suite=$? ;;
esac
echo "suite: $suite"
[ -e "$TOOLCELL_TESTS_DIR/skips" ] && sed 's/^/skip: /' "$TOOLCELL_TESTS_DIR/skips"
echo "machine: off"
