#!/bin/sh
# apply, confirm and rollback work while the hypervisor gives every CPU a small part of its time.
# hosts: router16
# kernels: 6.12
# timeout: 300
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
. /h/overload.sh
export RINGWISE_STATE_DIR=/tmp/rw352

links eth0 eth1
cost_load eth0
quiet=$(work)
for cpu in $cpus; do
	taskset "$(printf '%x' $((1 << cpu)))" sh -c 'while [ -e /tmp/steal ]; do echo 90 >/dev/labbusy; sleep 0.01; done' &
done >/tmp/steal
sleep 1
slower "$quiet" 300
there_and_back eth0 eth1
rm /tmp/steal
wait
