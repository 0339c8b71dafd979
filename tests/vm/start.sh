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
exec > /dev/ttyS0 2>&1 < /dev/null
# The machine is the suite's own: its clock and its swap may be changed.
export TOOLCELL_TESTS_OWN_MACHINE=1
# shellcheck disable=SC2046 # they are words of a command line
/suite/suite.sh $(cat /suite/words)
sync
poweroff -f
