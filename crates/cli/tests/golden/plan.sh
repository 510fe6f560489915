#!/bin/sh
# Made by ringwise 0.2.0 for edge3, kernel 6.12.48: 48 changes on eth1 eth2, 48 settings checked. None interrupts traffic.
# Run as root: apply writes the planned values, undo puts back the values that were found.
# Exit status: 0 done, 1 nothing changed, 3 done except what this script cannot write,
#   4 failed and restored, 5 failed and not restored, 6 refused.
set -u
LC_ALL=C
export LC_ALL

tools() {
  :
}

devices() {
  :
  same_device eth1 '/sys/bus/*/devices/0000:03:00.0/net/eth1 /sys/bus/*/devices/0000:03:00.0/virtio*/net/eth1'
  same_device eth2 '/sys/bus/*/devices/0000:04:00.0/net/eth2 /sys/bus/*/devices/0000:04:00.0/virtio*/net/eth2'
}

# Settings that no common tool can write.
left_out() {
  :
}

# The planned values.
planned() {
  :
  irq_cpus eth1 eth1-TxRx-0 0
  irq_cpus eth1 eth1-TxRx-1 2
  irq_cpus eth1 eth1-TxRx-2 4
  irq_cpus eth1 eth1-TxRx-3 6
  irq_cpus eth1 eth1-TxRx-4 1
  irq_cpus eth1 eth1-TxRx-5 3
  irq_cpus eth1 eth1-TxRx-6 5
  irq_cpus eth1 eth1-TxRx-7 7
  irq_cpus eth2 eth2-TxRx-0 8
  irq_cpus eth2 eth2-TxRx-1 10
  irq_cpus eth2 eth2-TxRx-2 12
  irq_cpus eth2 eth2-TxRx-3 14
  irq_cpus eth2 eth2-TxRx-4 9
  irq_cpus eth2 eth2-TxRx-5 11
  irq_cpus eth2 eth2-TxRx-6 13
  irq_cpus eth2 eth2-TxRx-7 15
  value 'eth1 tx-0 xps_cpus' /sys/class/net/eth1/queues/tx-0/xps_cpus mask 101
  value 'eth1 tx-1 xps_cpus' /sys/class/net/eth1/queues/tx-1/xps_cpus mask 404
  value 'eth1 tx-2 xps_cpus' /sys/class/net/eth1/queues/tx-2/xps_cpus mask 1010
  value 'eth1 tx-3 xps_cpus' /sys/class/net/eth1/queues/tx-3/xps_cpus mask 4040
  value 'eth1 tx-4 xps_cpus' /sys/class/net/eth1/queues/tx-4/xps_cpus mask 202
  value 'eth1 tx-5 xps_cpus' /sys/class/net/eth1/queues/tx-5/xps_cpus mask 808
  value 'eth1 tx-6 xps_cpus' /sys/class/net/eth1/queues/tx-6/xps_cpus mask 2020
  value 'eth1 tx-7 xps_cpus' /sys/class/net/eth1/queues/tx-7/xps_cpus mask 8080
  value 'eth2 tx-0 xps_cpus' /sys/class/net/eth2/queues/tx-0/xps_cpus mask 101
  value 'eth2 tx-1 xps_cpus' /sys/class/net/eth2/queues/tx-1/xps_cpus mask 404
  value 'eth2 tx-2 xps_cpus' /sys/class/net/eth2/queues/tx-2/xps_cpus mask 1010
  value 'eth2 tx-3 xps_cpus' /sys/class/net/eth2/queues/tx-3/xps_cpus mask 4040
  value 'eth2 tx-4 xps_cpus' /sys/class/net/eth2/queues/tx-4/xps_cpus mask 202
  value 'eth2 tx-5 xps_cpus' /sys/class/net/eth2/queues/tx-5/xps_cpus mask 808
  value 'eth2 tx-6 xps_cpus' /sys/class/net/eth2/queues/tx-6/xps_cpus mask 2020
  value 'eth2 tx-7 xps_cpus' /sys/class/net/eth2/queues/tx-7/xps_cpus mask 8080
  value 'eth1 rx-0 rps_cpus' /sys/class/net/eth1/queues/rx-0/rps_cpus mask 0
  value 'eth1 rx-1 rps_cpus' /sys/class/net/eth1/queues/rx-1/rps_cpus mask 0
  value 'eth1 rx-2 rps_cpus' /sys/class/net/eth1/queues/rx-2/rps_cpus mask 0
  value 'eth1 rx-3 rps_cpus' /sys/class/net/eth1/queues/rx-3/rps_cpus mask 0
  value 'eth1 rx-4 rps_cpus' /sys/class/net/eth1/queues/rx-4/rps_cpus mask 0
  value 'eth1 rx-5 rps_cpus' /sys/class/net/eth1/queues/rx-5/rps_cpus mask 0
  value 'eth1 rx-6 rps_cpus' /sys/class/net/eth1/queues/rx-6/rps_cpus mask 0
  value 'eth1 rx-7 rps_cpus' /sys/class/net/eth1/queues/rx-7/rps_cpus mask 0
  value 'eth2 rx-0 rps_cpus' /sys/class/net/eth2/queues/rx-0/rps_cpus mask 0
  value 'eth2 rx-1 rps_cpus' /sys/class/net/eth2/queues/rx-1/rps_cpus mask 0
  value 'eth2 rx-2 rps_cpus' /sys/class/net/eth2/queues/rx-2/rps_cpus mask 0
  value 'eth2 rx-3 rps_cpus' /sys/class/net/eth2/queues/rx-3/rps_cpus mask 0
  value 'eth2 rx-4 rps_cpus' /sys/class/net/eth2/queues/rx-4/rps_cpus mask 0
  value 'eth2 rx-5 rps_cpus' /sys/class/net/eth2/queues/rx-5/rps_cpus mask 0
  value 'eth2 rx-6 rps_cpus' /sys/class/net/eth2/queues/rx-6/rps_cpus mask 0
  value 'eth2 rx-7 rps_cpus' /sys/class/net/eth2/queues/rx-7/rps_cpus mask 0
}

# The values that were found.
found() {
  :
  irq_cpus eth1 eth1-TxRx-0 0-15
  irq_cpus eth1 eth1-TxRx-1 0-15
  irq_cpus eth1 eth1-TxRx-2 0-15
  irq_cpus eth1 eth1-TxRx-3 0-15
  irq_cpus eth1 eth1-TxRx-4 0-15
  irq_cpus eth1 eth1-TxRx-5 0-15
  irq_cpus eth1 eth1-TxRx-6 0-15
  irq_cpus eth1 eth1-TxRx-7 0-15
  irq_cpus eth2 eth2-TxRx-0 0-15
  irq_cpus eth2 eth2-TxRx-1 0-15
  irq_cpus eth2 eth2-TxRx-2 0-15
  irq_cpus eth2 eth2-TxRx-3 0-15
  irq_cpus eth2 eth2-TxRx-4 0-15
  irq_cpus eth2 eth2-TxRx-5 0-15
  irq_cpus eth2 eth2-TxRx-6 0-15
  irq_cpus eth2 eth2-TxRx-7 0-15
  value 'eth1 tx-0 xps_cpus' /sys/class/net/eth1/queues/tx-0/xps_cpus mask 0
  value 'eth1 tx-1 xps_cpus' /sys/class/net/eth1/queues/tx-1/xps_cpus mask 0
  value 'eth1 tx-2 xps_cpus' /sys/class/net/eth1/queues/tx-2/xps_cpus mask 0
  value 'eth1 tx-3 xps_cpus' /sys/class/net/eth1/queues/tx-3/xps_cpus mask 0
  value 'eth1 tx-4 xps_cpus' /sys/class/net/eth1/queues/tx-4/xps_cpus mask 0
  value 'eth1 tx-5 xps_cpus' /sys/class/net/eth1/queues/tx-5/xps_cpus mask 0
  value 'eth1 tx-6 xps_cpus' /sys/class/net/eth1/queues/tx-6/xps_cpus mask 0
  value 'eth1 tx-7 xps_cpus' /sys/class/net/eth1/queues/tx-7/xps_cpus mask 0
  value 'eth2 tx-0 xps_cpus' /sys/class/net/eth2/queues/tx-0/xps_cpus mask 0
  value 'eth2 tx-1 xps_cpus' /sys/class/net/eth2/queues/tx-1/xps_cpus mask 0
  value 'eth2 tx-2 xps_cpus' /sys/class/net/eth2/queues/tx-2/xps_cpus mask 0
  value 'eth2 tx-3 xps_cpus' /sys/class/net/eth2/queues/tx-3/xps_cpus mask 0
  value 'eth2 tx-4 xps_cpus' /sys/class/net/eth2/queues/tx-4/xps_cpus mask 0
  value 'eth2 tx-5 xps_cpus' /sys/class/net/eth2/queues/tx-5/xps_cpus mask 0
  value 'eth2 tx-6 xps_cpus' /sys/class/net/eth2/queues/tx-6/xps_cpus mask 0
  value 'eth2 tx-7 xps_cpus' /sys/class/net/eth2/queues/tx-7/xps_cpus mask 0
  value 'eth1 rx-0 rps_cpus' /sys/class/net/eth1/queues/rx-0/rps_cpus mask ffff
  value 'eth1 rx-1 rps_cpus' /sys/class/net/eth1/queues/rx-1/rps_cpus mask ffff
  value 'eth1 rx-2 rps_cpus' /sys/class/net/eth1/queues/rx-2/rps_cpus mask ffff
  value 'eth1 rx-3 rps_cpus' /sys/class/net/eth1/queues/rx-3/rps_cpus mask ffff
  value 'eth1 rx-4 rps_cpus' /sys/class/net/eth1/queues/rx-4/rps_cpus mask ffff
  value 'eth1 rx-5 rps_cpus' /sys/class/net/eth1/queues/rx-5/rps_cpus mask ffff
  value 'eth1 rx-6 rps_cpus' /sys/class/net/eth1/queues/rx-6/rps_cpus mask ffff
  value 'eth1 rx-7 rps_cpus' /sys/class/net/eth1/queues/rx-7/rps_cpus mask ffff
  value 'eth2 rx-0 rps_cpus' /sys/class/net/eth2/queues/rx-0/rps_cpus mask ffff
  value 'eth2 rx-1 rps_cpus' /sys/class/net/eth2/queues/rx-1/rps_cpus mask ffff
  value 'eth2 rx-2 rps_cpus' /sys/class/net/eth2/queues/rx-2/rps_cpus mask ffff
  value 'eth2 rx-3 rps_cpus' /sys/class/net/eth2/queues/rx-3/rps_cpus mask ffff
  value 'eth2 rx-4 rps_cpus' /sys/class/net/eth2/queues/rx-4/rps_cpus mask ffff
  value 'eth2 rx-5 rps_cpus' /sys/class/net/eth2/queues/rx-5/rps_cpus mask ffff
  value 'eth2 rx-6 rps_cpus' /sys/class/net/eth2/queues/rx-6/rps_cpus mask ffff
  value 'eth2 rx-7 rps_cpus' /sys/class/net/eth2/queues/rx-7/rps_cpus mask ffff
}

# The values to restore, with all settings that the script may disturb.
before() {
  :
  irq_cpus eth1 eth1-TxRx-0 0-15
  irq_cpus eth1 eth1-TxRx-1 0-15
  irq_cpus eth1 eth1-TxRx-2 0-15
  irq_cpus eth1 eth1-TxRx-3 0-15
  irq_cpus eth1 eth1-TxRx-4 0-15
  irq_cpus eth1 eth1-TxRx-5 0-15
  irq_cpus eth1 eth1-TxRx-6 0-15
  irq_cpus eth1 eth1-TxRx-7 0-15
  irq_cpus eth2 eth2-TxRx-0 0-15
  irq_cpus eth2 eth2-TxRx-1 0-15
  irq_cpus eth2 eth2-TxRx-2 0-15
  irq_cpus eth2 eth2-TxRx-3 0-15
  irq_cpus eth2 eth2-TxRx-4 0-15
  irq_cpus eth2 eth2-TxRx-5 0-15
  irq_cpus eth2 eth2-TxRx-6 0-15
  irq_cpus eth2 eth2-TxRx-7 0-15
  value 'eth1 tx-0 xps_cpus' /sys/class/net/eth1/queues/tx-0/xps_cpus mask 0
  value 'eth1 tx-1 xps_cpus' /sys/class/net/eth1/queues/tx-1/xps_cpus mask 0
  value 'eth1 tx-2 xps_cpus' /sys/class/net/eth1/queues/tx-2/xps_cpus mask 0
  value 'eth1 tx-3 xps_cpus' /sys/class/net/eth1/queues/tx-3/xps_cpus mask 0
  value 'eth1 tx-4 xps_cpus' /sys/class/net/eth1/queues/tx-4/xps_cpus mask 0
  value 'eth1 tx-5 xps_cpus' /sys/class/net/eth1/queues/tx-5/xps_cpus mask 0
  value 'eth1 tx-6 xps_cpus' /sys/class/net/eth1/queues/tx-6/xps_cpus mask 0
  value 'eth1 tx-7 xps_cpus' /sys/class/net/eth1/queues/tx-7/xps_cpus mask 0
  value 'eth2 tx-0 xps_cpus' /sys/class/net/eth2/queues/tx-0/xps_cpus mask 0
  value 'eth2 tx-1 xps_cpus' /sys/class/net/eth2/queues/tx-1/xps_cpus mask 0
  value 'eth2 tx-2 xps_cpus' /sys/class/net/eth2/queues/tx-2/xps_cpus mask 0
  value 'eth2 tx-3 xps_cpus' /sys/class/net/eth2/queues/tx-3/xps_cpus mask 0
  value 'eth2 tx-4 xps_cpus' /sys/class/net/eth2/queues/tx-4/xps_cpus mask 0
  value 'eth2 tx-5 xps_cpus' /sys/class/net/eth2/queues/tx-5/xps_cpus mask 0
  value 'eth2 tx-6 xps_cpus' /sys/class/net/eth2/queues/tx-6/xps_cpus mask 0
  value 'eth2 tx-7 xps_cpus' /sys/class/net/eth2/queues/tx-7/xps_cpus mask 0
  value 'eth1 rx-0 rps_cpus' /sys/class/net/eth1/queues/rx-0/rps_cpus mask ffff
  value 'eth1 rx-1 rps_cpus' /sys/class/net/eth1/queues/rx-1/rps_cpus mask ffff
  value 'eth1 rx-2 rps_cpus' /sys/class/net/eth1/queues/rx-2/rps_cpus mask ffff
  value 'eth1 rx-3 rps_cpus' /sys/class/net/eth1/queues/rx-3/rps_cpus mask ffff
  value 'eth1 rx-4 rps_cpus' /sys/class/net/eth1/queues/rx-4/rps_cpus mask ffff
  value 'eth1 rx-5 rps_cpus' /sys/class/net/eth1/queues/rx-5/rps_cpus mask ffff
  value 'eth1 rx-6 rps_cpus' /sys/class/net/eth1/queues/rx-6/rps_cpus mask ffff
  value 'eth1 rx-7 rps_cpus' /sys/class/net/eth1/queues/rx-7/rps_cpus mask ffff
  value 'eth2 rx-0 rps_cpus' /sys/class/net/eth2/queues/rx-0/rps_cpus mask ffff
  value 'eth2 rx-1 rps_cpus' /sys/class/net/eth2/queues/rx-1/rps_cpus mask ffff
  value 'eth2 rx-2 rps_cpus' /sys/class/net/eth2/queues/rx-2/rps_cpus mask ffff
  value 'eth2 rx-3 rps_cpus' /sys/class/net/eth2/queues/rx-3/rps_cpus mask ffff
  value 'eth2 rx-4 rps_cpus' /sys/class/net/eth2/queues/rx-4/rps_cpus mask ffff
  value 'eth2 rx-5 rps_cpus' /sys/class/net/eth2/queues/rx-5/rps_cpus mask ffff
  value 'eth2 rx-6 rps_cpus' /sys/class/net/eth2/queues/rx-6/rps_cpus mask ffff
  value 'eth2 rx-7 rps_cpus' /sys/class/net/eth2/queues/rx-7/rps_cpus mask ffff
}

