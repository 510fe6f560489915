#!/bin/sh
# Random events for five minutes, or an hour with --long: at the end the layout is the planned one, and memory has not grown.
# hosts: router3
# kernels: 6.12
# areas: daemon
# timeout: 900
# long: 5400
. /h/lib.sh
. /h/state.sh
. /h/daemon.sh

devs="eth0 eth1 eth2"
links $devs
status "the layout is applied" 0 ringwise apply --yes --goal forward $devs
layout >/tmp/planned
serve --config none
sleep 5
memory
minutes=5
[ -z "$LONG" ] || minutes=60
read -r _now _ </proc/uptime
end=$((${_now%.*} + minutes * 60))
half=$((${_now%.*} + minutes * 30))
seed=${SEED:-$$}
echo "# seed $seed, $minutes minutes"

events=0
# Events that this process of the service has seen, and its memory after ten of them.
seen=0
early=
while read -r _now _ </proc/uptime && [ ${_now%.*} -lt $end ]; do
	pick 3
	dev=eth$_p
	pick 9
	case $_p in
	0)
		pci=$(basename "$(pci_of $dev)")
		driver=$(readlink -f /sys/bus/pci/devices/$pci/driver)
		echo $pci >$driver/unbind
		echo $pci >$driver/bind
		ip link set $dev up
		;;
	1)
		pick 3
		ethtool -L $dev combined $((2 << _p)) 2>/dev/null
		pick 2
		[ $_p = 0 ] || sleep 3
		ethtool -L $dev combined 8 2>/dev/null
		;;
	2)
		pick 7
		cpu=$((_p + 1))
		echo 0 >/sys/devices/system/cpu/cpu$cpu/online
		pick 20
		sleep $_p
		echo 1 >/sys/devices/system/cpu/cpu$cpu/online
		;;
	3)
		i=0
		pick 40
		while [ $i -lt $_p ]; do
			ip link set $dev down
			ip link set $dev up
			i=$((i + 1))
		done
		;;
	4)
		ethtool -G $dev rx 512 2>/dev/null
		ethtool -G $dev rx 256 2>/dev/null
		;;
	5)
		kill -STOP $service
		ip link set $dev down
		ip link set $dev up
		pick 15
		sleep $_p
		kill -CONT $service
		;;
	6)
		# A crash: whoever starts it again finds what it left. Only in the first half, so that one process sees many events.
		[ ${_now%.*} -lt $half ] || continue
		kill -KILL $service
		wait $service 2>/dev/null
		pick 4
		sleep $_p
		ringwise -v daemon --config none 2>>$log &
		service=$!
		seen=0 early=
		;;
	7)
		status "verify ($events)" 0 sh -c 'ringwise verify >/tmp/verify; [ $? -ne 1 ]' >/dev/null
		;;
	8)
		ip link set $dev down
		ip link set $dev name away0
		ip link set away0 up
		pick 15
		sleep $_p
		ip link set away0 down
		ip link set away0 name $dev
		ip link set $dev up
		;;
	esac
	events=$((events + 1))
	seen=$((seen + 1))
	pick 12
	sleep $_p
	[ $seen != 10 ] || early=$(anon)
done
echo "# $events events, $(journals) journals"
links $devs
back "after $events events the layout is the planned one" /tmp/planned 90
memory
same_memory $seen "$early"
check "the service still runs" test -d /proc/$service
status "the host is as applied" 0 ringwise verify
cat /tmp/out
status "stop" 0 ringwise daemon stop
grep -v writes $log | tail -n 40
status "everything is put back" 0 ringwise rollback --yes 0
