# Runs in the guest after init: gives the NICs the names of the host file, then runs the scenarios
# (or the demo, or a shell). xtask reads everything that it leaves in results/.
. ./host.env
export HOST KERNEL SYSTEM LC_ALL NO_COLOR
# Emulated on a busy machine, a device may take longer than ringwise waits by default.
export RINGWISE_DEVICE_DEADLINE_MS=20000
hostname "$HOST"

# A program that is started from the share is fetched page by page each time, which takes seconds.
mkdir -p /run/lab
mount -t tmpfs -o mode=755 lab /run/lab
for program in ringwise heartbeat state fresh lands order; do
	cp $program /run/lab/$program
	mount --bind /run/lab/$program /h/$program
done

# A sign of life from every CPU, before drivers load. Without it xtask assumes that the guest is lost.
mkdir -p results
./heartbeat results/heartbeat &
# shellcheck disable=SC2064 # this process, now
trap "kill $!" EXIT
for cpu in $OFFLINE; do
	echo 0 >/sys/devices/system/cpu/cpu"$cpu"/online
done

# name_nics: gives new NICs the names of the host file, and brings them up. A name that another NIC still has is
# assigned in a second pass.
name_nics() {
	for pass in 1 2; do
		for dev in /sys/class/net/*; do
			old=${dev##*/}
			read -r mac <"$dev/address"
			while read -r its new _; do
				[ "$its" = "$mac" ] || continue
				if [ "$old" != "$new" ]; then
					[ $pass = 1 ] && [ -e "/sys/class/net/$new" ] && new=tmp-$new
					ip link set "$old" name "$new"
				fi
				read -r flags <"/sys/class/net/$new/flags"
				case $new:$((flags & 1)) in
				tmp-*) ;;
				*:0) ip link set "$new" up ;;
				esac
				break
			done <nics
		done
	done
}

# Drivers load in the order of the host file. The links of one driver come up while the next driver loads.
for module in $(awk '!seen[$3]++ { print $3 }' nics); do
	case $module in
	mqnic)
		[ -f mqnic.ko ] && insmod ./mqnic.ko bus="$MQNIC_BUS" managed="$MQNIC_MANAGED"
		;;
	*) modprobe "$module" ;;
	esac
	name_nics
done

# Scripts search the output for whole lines, so ringwise must not fold it.
export PATH="/h:$PATH" COLUMNS RINGWISE_COLUMNS=0
case $MODE in
demo)
	sh ./demo.sh
	exit
	;;
shell)
	case $SYSTEM in
	systemd) setsid -c bash -l </dev/ttyS0 >/dev/ttyS0 2>&1 ;;
	*) setsid cttyhack sh -l ;;
	esac
	exit 0
	;;
esac

# Each scenario begins with the settings of a guest that has just booted, whatever the scenario before left (`fresh` prints
# the differences). Hosts with systemd have no such step, because their scenarios reboot.
if [ "$SYSTEM" != systemd ]; then
	names=$(awk '{ print $2 }' nics)
	# shellcheck disable=SC2086 # a list
	./state links $names
	# shellcheck disable=SC2086 # a list
	./fresh save /run/lab/settings $names
fi

# A scenario that exits with status 75 has left `PHASE HOW` in results/again (see next_phase in
# remote.sh): the guest reboots, and the scenario is called again with that PHASE.
while read -r name limit; do
	[ -e "results/$name.rc" ] && continue
	PHASE=1
	[ -e results/phase ] && read -r PHASE <results/phase
	rm -f results/phase results/again
	export PHASE
	[ "$PHASE" = 1 ] && echo "lab: $name" || echo "lab: $name, phase $PHASE"
	[ -e /run/lab/settings ] && ./fresh restore /run/lab/settings >>"results/$name.out" 2>&1
	t0=$(cut -d' ' -f1 /proc/uptime)
	timeout -s KILL "$limit" sh "./scenarios/$name.sh" >>"results/$name.out" 2>&1 </dev/null
	rc=$?
	t1=$(cut -d' ' -f1 /proc/uptime)
	if [ $rc = 75 ] && [ "$SYSTEM" = systemd ] && [ -e results/again ]; then
		read -r PHASE _ <results/again
		echo "$PHASE" >results/phase
		exit 75
	fi
	echo "$rc $t0 $t1" >"results/$name.rc"
done <plan
dmesg >>results/dmesg
exit 0
