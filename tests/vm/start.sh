#!/bin/sh
# First process on the disk: makes the file systems that a machine has, runs the suite's core with its results on the
# first serial line, and turns the machine off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts /dev/mqueue
mount -t tmpfs -o mode=1777 tmp /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=755 run /run
mount -t mqueue mqueue /dev/mqueue
mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
ifconfig lo 127.0.0.1 up
hostname machine
cd / || exit 1

export TOOLCELL_BIN=/suite/toolcell TOOLCELL_TESTS_PROGRAMS=/suite/programs TOOLCELL_TESTS_DIR=/var/tmp/toolcell-tests
exec > /dev/ttyS0 2>&1 < /dev/null
echo "machine: Linux $(uname -r), cgroups $(cat /sys/fs/cgroup/cgroup.controllers), LSM $(cat /sys/kernel/security/lsm 2> /dev/null)"
words=$(cat /suite/words)
# shellcheck disable=SC2086 # they are words of a command line
/suite/e2e --test-threads "$(($(nproc) * 2))" $words --skip own_machine::
suite=$?
# What changes the machine itself, its clock for one, runs last and alone.
case $words in
    *own_machine::*) TOOLCELL_TESTS_OWN_MACHINE=1 /suite/e2e --test-threads 1 own_machine:: || suite=$? ;;
esac
echo "suite: $suite"
[ -e "$TOOLCELL_TESTS_DIR/skips" ] && sed 's/^/skip: /' "$TOOLCELL_TESTS_DIR/skips"
echo "machine: off"
sync
poweroff -f
