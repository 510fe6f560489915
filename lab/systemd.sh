# Run by lab.service when the system is up: guest.sh, as after init.sh; then a reboot if a
# scenario wants one, else the end of the guest.
cd /h || exit
# Nobody asked for this reboot: the kernel or a watchdog did it.
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
	# As the power button: nothing is told, nothing is written any more.
	hard) echo b >/proc/sysrq-trigger ;;
	*) systemctl reboot --no-block ;;
	esac
	sleep infinity
fi
echo "lab: status $rc after $(cut -d' ' -f1 /proc/uptime) s"
# QEMU's debug exit turns this byte into its own exit status.
printf %b "\\0$(printf %03o "$rc")" | dd of=/dev/port bs=1 seek=244 count=1 2>/dev/null
poweroff -f
