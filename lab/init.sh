#!/bin/busybox sh
# The first process of every lab guest: mounts file systems and shares, runs /h/guest.sh, and reports its end.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin
/bin/busybox --install -s /bin
# The `ip` of busybox would hide the real one.
[ -e /usr/bin/ip ] && rm -f /bin/ip /bin/tc
mount -t proc proc /proc
# Only tests whether a guest boots at all: xtask waits for the answer 42 (qemu.rs).
if grep -q lab.probe /proc/cmdline; then
	mount -t devtmpfs dev /dev
	printf '\x2a' | dd of=/dev/port bs=1 seek=244 count=1 2>/dev/null
	poweroff -f
fi
# The demo uses the terminal alone.
say() { grep -q lab.quiet /proc/cmdline || echo "$@"; }
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t debugfs debug /sys/kernel/debug 2>/dev/null
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
# In 6.1 and older, virtio_pci is a module.
modprobe virtio_pci 2>/dev/null
modprobe 9pnet_virtio
modprobe 9p
rc=99
if mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 lab /h; then
	# lab.root=DISK: a root file system of its own with systemd, which runs /h/systemd.sh when it is up.
	disk=$(sed -n 's/.*lab\.root=\([^ ]*\).*/\1/p' /proc/cmdline)
	if [ -n "$disk" ]; then
		# ext4 requests its checksum from the kernel, and no program here answers the request.
		for module in virtio_blk crc32c_generic ext4; do
			modprobe $module
		done
		mkdir -p /new
		if mount -t ext4 "/dev/$disk" /new; then
			mount -t tmpfs modules /new/usr/lib/modules
			cp -a /lib/modules/. /new/usr/lib/modules
			for dir in h dev run sys proc; do
				mount --move /$dir /new/$dir
			done
			exec switch_root /new /lib/systemd/systemd
		fi
	else
		cd /h || exit
		say "lab: up after $(cut -d' ' -f1 /proc/uptime) s"
		sh ./guest.sh
		rc=$?
		# Only x86 has QEMU's debug exit, see below.
		[ "$(uname -m)" = x86_64 ] || echo $rc >results/status
		cd /
	fi
	umount /h 2>/dev/null
fi
say "lab: status $rc after $(cut -d' ' -f1 /proc/uptime) s"
# QEMU's debug exit turns this byte into its own exit status.
[ "$(uname -m)" = x86_64 ] && printf %b "\\x$(printf %02x "$rc")" | dd of=/dev/port bs=1 seek=244 count=1 2>/dev/null
poweroff -f
