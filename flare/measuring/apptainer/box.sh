#!/bin/sh
# Is process 1 of a box: of namespaces in which a container of Apptainer is run.
#
#     box.sh OUTPUTS OPTIONS SHM OPTIONS
#
# It mounts two folders in memory, hides the control groups of the computer, turns on
# the network within the box, and forbids that anybody here gets new powers by a
# namespace of his own. Then it says so, and waits for the end of the process that has
# started it, of which it knows by its standard input. When it ends, the kernel ends
# every process of the box; its mounts, which nobody else sees, vanish then.
PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs -o "$2" tmpfs "$1" &&
    mount -t tmpfs -o "$4" tmpfs "$3" &&
    mount -t sysfs -o ro,nosuid,nodev,noexec sysfs /sys &&
    ip link set lo up &&
    echo 0 > /proc/sys/user/max_user_namespaces &&
    echo ready || exit 1
read -r _
