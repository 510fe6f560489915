#!/bin/sh
# Read, plan, apply, verify and roll back on an arm64 machine, whose vectors are LPIs of a GIC's ITS.
# hosts: small2-arm64
# kernels: 6.12-arm64
# timeout: 300
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw36

same "the machine" "$(uname -m)" aarch64
links eth0 eth1

# chips DEV: the interrupt controllers of its vectors, as /proc/interrupts names them.
chips() {
	awk -v d="$1" '{ n = $NF } n == d || index(n, d "-") == 1 { print $4 }' /proc/interrupts | sort -u
}
# The vectors of a virtio-net have the name of its virtio device.
virtio=$(basename "$(readlink -f /sys/class/net/eth0/device)")
# vectors: `NUMBER NAME` of the vectors of both NICs; serving: those of their queues.
vectors() {
	irqs "$virtio"
	irqs eth1
}
serving() {
	vectors | grep -e input -e output -e -rx- -e -tx-
}
# places: the requested and the effective CPUs of each vector, in the order of their names.
places() {
	vectors | while read -r n name; do
		look mask "/proc/irq/$n/smp_affinity_list"
		look on "/proc/irq/$n/effective_affinity_list"
		# shellcheck disable=SC2154 # look sets them
		echo "$name $mask $on"
	done | sort
}
# keep FILE: everything that is compared before and after.
keep() {
	{
		state eth0 eth1
		places
	} >"$1"
}

same "eth0: its vectors are LPIs" "$(chips "$virtio" | sed 's/-0000:.*//')" ITS-PCI-MSIX
same "eth1: its vectors are LPIs" "$(chips eth1 | sed 's/-0000:.*//')" ITS-PCI-MSIX
check "the timer is a level interrupt of the GIC" grep -q 'GICv3 .*Level *arch_timer' /proc/interrupts
same "eth0: vectors" "$(irqs "$virtio" | wc -l)" 5
same "eth1: vectors" "$(irqs eth1 | wc -l)" 5
for dev in eth0 eth1; do
	same "$dev: receive queues" "$(ls -d /sys/class/net/$dev/queues/rx-* | wc -l)" 2
	ringwise show -j $dev >/tmp/show 2>/tmp/err
	same "$dev: vectors that ringwise reads" \
		"$(tr -d ' \n' </tmp/show | grep -o '"role":' | wc -l)" 5
done

# On x86 without interrupt remapping the kernel moves an interrupt when it is next raised. Here it reprograms the ITS at the write: the effective
# CPU follows, although the interrupt was not raised in between.
moved=0 raised=0 pending=0
for n in $(vectors | awk '{ print $1 }'); do
	was=$(asked "$n")
	for cpu in 1 0; do
		counts=$(irq_counts "$n")
		echo $cpu >"/proc/irq/$n/smp_affinity_list"
		look on "/proc/irq/$n/effective_affinity_list"
		if [ "$counts" != "$(irq_counts "$n")" ]; then
			raised=$((raised + 1))
		elif [ "$on" = $cpu ]; then
			moved=$((moved + 1))
		else
			pending=$((pending + 1))
		fi
	done
	echo "$was" >"/proc/irq/$n/smp_affinity_list"
done
echo "moved at once $moved, raised meanwhile $raised, pending $pending"
same "no interrupt waits for its next one" $pending 0
check "at least 15 of 20 writes are seen without an interrupt" [ $moved -ge 15 ]

# Everything on CPU 0, which a plan must change on both NICs.
for n in $(serving | awk '{ print $1 }'); do
	echo 0 >"/proc/irq/$n/smp_affinity_list"
done
keep /tmp/before
status "the plan has something to do" 3 ringwise plan --exit-code
status "plan -j" 0 ringwise plan -j
tr -d ' \n' </tmp/out >/tmp/plan
for dev in eth0 eth1; do
	check "the plan changes interrupts of $dev" grep -q "\"setting\":{\"knob\":\"irq_cpus\",\"dev\":\"$dev\",\"of\":{\"rx\":1},\"cpus\":\"1\"}" /tmp/plan
done
keep /tmp/after
unchanged "a plan changes nothing" /tmp/before /tmp/after

status "apply" 0 ringwise apply --yes
cat /tmp/out /tmp/err
serving | while read -r n name; do
	q=${name##*[.-]}
	same "$name: requested CPU" "$(asked "$n")" "$q"
	same "$name: effective CPU" "$(effective "$n")" "$q"
done
for dev in eth0 eth1; do
	for q in 0 1; do
		same "$dev: CPUs that send through queue $q" \
			"$(cat /sys/class/net/$dev/queues/tx-$q/xps_cpus)" $((1 << q))
	done
done
status "verify" 0 ringwise verify
status "nothing to do a second time" 0 ringwise plan --exit-code
keep /tmp/applied

# The driver raises every queue's vector every two seconds.
for n in $(irqs eth1 | awk '{ print $1 }'); do
	echo "$n $(irq_counts "$n")"
done >/tmp/counts
sleep 5
irqs eth1 | grep -e -rx- -e -tx- | while read -r n name; do
	# shellcheck disable=SC2046 # a count for each CPU
	set -- $(grep "^$n " /tmp/counts) $(irq_counts "$n")
	same "$name: the CPUs that serve it" "$(if [ "$4" -gt "$2" ]; then printf 0; fi; if [ "$5" -gt "$3" ]; then printf 1; fi)" "${name##*-}"
done

# A manual change is found, and mended.
n=$(irq_of eth1-rx-1)
echo 0 >"/proc/irq/$n/smp_affinity_list"
status "verify finds a manual change" 3 ringwise verify
status "apply --take-over mends it" 0 ringwise apply --yes --take-over
same "eth1-rx-1: effective CPU" "$(effective "$n")" 1

status "rollback 0" 0 ringwise rollback --yes 0
cat /tmp/err
keep /tmp/after
unchanged "everything is as it was found, effective CPUs included" /tmp/before /tmp/after
check "the comparison sees what apply changed" sh -c '! cmp -s /tmp/before /tmp/applied'

# Fewer channels: igb requests its vectors again.
status "apply with one queue" 0 ringwise apply --yes eth1 --queues 1 --allow-disruption
links eth1
same "eth1: receive queues" "$(ls -d /sys/class/net/eth1/queues/rx-* | wc -l)" 1
status "verify with one queue" 0 ringwise verify
status "rollback of the channels" 0 ringwise rollback --yes 0
cat /tmp/err
links eth1
keep /tmp/after
unchanged "channels and affinity are as they were found" /tmp/before /tmp/after

# Masks of both CPUs. Where x86 leaves an interrupt on its CPU, the driver of the ITS chooses the CPU of a new mask
# that serves the fewest vectors. So a rollback restores the masks, and lists the interrupts that another CPU serves now.
export RINGWISE_STATE_DIR=/tmp/rw361
for n in $(irqs eth1 | awk '{ print $1 }'); do
	echo 1 >"/proc/irq/$n/smp_affinity_list"
	echo 0-1 >"/proc/irq/$n/smp_affinity_list"
done
# They stay on CPU 1, which serves more than CPU 0 from now on.
for n in $(irqs "$virtio" | awk '{ print $1 }'); do
	echo 1 >"/proc/irq/$n/smp_affinity_list"
done
state eth0 eth1 >/tmp/before
places >/tmp/places
cat /tmp/places
same "vectors of eth1 on CPU 1 with masks of both" "$(grep -c '^eth1.* 0-1 1$' /tmp/places)" 5
status "apply to eth1" 0 ringwise apply --yes eth1
status "rollback" 0 ringwise rollback --yes 0
cat /tmp/out /tmp/err
state eth0 eth1 >/tmp/after
unchanged "all settings are as they were found" /tmp/before /tmp/after
places >/tmp/now
# The names of ringwise for eth1-rx-0 that has moved: `eth1 rx-0 (CPU 0, was CPU 1)`.
awk 'NR == FNR { was[$1] = $3; next }
	was[$1] != $3 { name = $1; sub("-", " ", name); print name " (CPU " $3 ", was CPU " was[$1] ")" }' \
	/tmp/places /tmp/now >/tmp/moved
cat /tmp/moved
check "the kernel has chosen another CPU for some" [ -s /tmp/moved ]
while read -r line; do
	says "the rollback lists $line" "$line"
done </tmp/moved
same "the rollback lists no other" "$(grep -h '^note:' /tmp/out /tmp/err | grep -o 'was CPU' | wc -l)" "$(wc -l </tmp/moved)"
