#!/bin/sh
# The cost of a sample compared with irqtop, sar and mpstat on the same host in one run. The only check is that each was
# measured: the numbers are for BENCHMARKS.md.
# lane: benchmark
# hosts: router16
# kernels: 6.12
# areas: watch
# timeout: 1800
# needs: peers
. /h/lib.sh
PEERS=/tmp/peers CGROUP=/tmp/cgroup/cost
DEVS=$(awk '{ print $2 }' /h/nics | while read -r d; do [ -e /sys/class/net/$d ] && echo $d; done)
mkdir -p $PEERS /tmp/cgroup
tar -C $PEERS -xf /h/peers.tar
mount -t cgroup2 none /tmp/cgroup
mkdir $CGROUP
. /h/cost.sh
peers_up
costs >/tmp/costs
# shellcheck disable=SC2116 # one line
echo "# interfaces: $(echo $DEVS)"
sed 's/^/# us a sample: /' /tmp/costs
cat $PEERS/tmp/cost.err
of() { awk -v w="$1" 'index($0, w) { print $1; exit }' /tmp/costs; }
ours=$(of 'ringwise watch --plain')
check "ringwise was measured ($ours us)" [ "$ours" -gt 0 ]
for peer in 'irqtop -e' 'irqtop -i' 'sar -I' 'mpstat -I' lsirq; do
	check "$peer was measured ($(of "$peer") us, $(($(of "$peer") * 10 / ours)) tenths of ours)" [ "$(of "$peer")" -gt 0 ]
done
peers_down
