# lab.service runs this when the system is up: it runs guest.sh, like init.sh. Then it reboots if a
# scenario requests it, or ends the guest.
cd /h || exit
# No scenario requested this reboot: the kernel or a watchdog caused it.
if [ -e results/booted ] && ! [ -e results/phase ]; then
	rc=98
else
	: >results/booted
	echo "lab: up after $(cut -d' ' -f1 /proc/uptime) s"
	sh ./guest.sh
	rc=$?
fi
mkdir -p results/keep
journalctl -b -o short-monotonic --no-hostname >>results/keep/journal
if [ $rc = 75 ]; then
	read -r _ how <results/again
	dmesg >>results/dmesg
	echo "lab: reboot ($how)"
	case $how in
	# As if the power is cut: no process is notified, nothing more is written.
	hard) echo b >/proc/sysrq-trigger ;;
	*) systemctl reboot --no-block ;;
	esac
	sleep infinity
fi
echo "lab: status $rc after $(cut -d' ' -f1 /proc/uptime) s"
# QEMU's debug exit turns this byte into its own exit status.
printf %b "\\0$(printf %03o "$rc")" | dd of=/dev/port bs=1 seek=244 count=1 2>/dev/null
poweroff -f
