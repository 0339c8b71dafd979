#!/bin/busybox sh
# shellcheck shell=dash
# First process of the machine, in the initramfs: finds the disk and hands over to what is on it.
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
    /bin/busybox insmod "$module"
done
/bin/busybox mount -t ext4 /dev/vda /disk && exec /bin/busybox switch_root /disk /suite/start.sh
echo "no disk" > /dev/ttyS0
/bin/busybox poweroff -f
