#!/bin/sh
# Finishes the Debian root of the hosts with `system = "systemd"`: a hook of mmdebstrap, which
# calls it with the root's directory. No service starts in there (mmdebstrap prevents it).
set -e
root=$1
unit=$root/etc/systemd/system

mkdir -p "$root/h" "$root/usr/lib/modules" "$unit" "$root/root/.ssh"
echo remote >"$root/etc/hostname"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
# The machine id is set, so that no boot counts as the first one.
echo 00000000000000000000000000000051 >"$root/etc/machine-id"
: >"$root/etc/fstab"

# Services that only cost time here. irqbalance and udev are installed, and scenarios start them.
for name in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
	fstrim.timer systemd-tmpfiles-clean.timer getty.target getty@.service serial-getty@.service \
	systemd-random-seed.service systemd-pstore.service systemd-update-utmp.service \
	systemd-update-utmp-runlevel.service systemd-binfmt.service systemd-remount-fs.service \
	sys-kernel-config.mount sys-fs-fuse-connections.mount dev-hugepages.mount dev-mqueue.mount \
	modprobe@configfs.service modprobe@drm.service modprobe@fuse.service modprobe@efi_pstore.service \
	modprobe@loop.service modprobe@dm_mod.service dbus-org.freedesktop.timesync1.service \
	systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket \
	systemd-udev-trigger.service systemd-udev-settle.service systemd-hwdb-update.service; do
	ln -sf /dev/null "$unit/$name"
done
rm -f "$unit"/multi-user.target.wants/irqbalance.service

mkdir -p "$root/etc/systemd/journald.conf.d" "$root/etc/systemd/logind.conf.d" "$root/etc/systemd/system.conf.d"
printf '[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\n' >"$root/etc/systemd/journald.conf.d/lab.conf"
# The stricter setting: processes that a session leaves behind in its scope are killed with it.
printf '[Login]\nKillUserProcesses=yes\n' >"$root/etc/systemd/logind.conf.d/lab.conf"
# Under emulation everything takes longer.
printf '[Manager]\nDefaultTimeoutStartSec=120s\nDefaultTimeoutStopSec=20s\n' \
	>"$root/etc/systemd/system.conf.d/lab.conf"

cat >"$unit/lab.service" <<EOF
[Unit]
Description=The lab's scenarios
After=multi-user.target

[Service]
Type=exec
Environment=HOME=/root TERM=dumb
ExecStart=/bin/sh /h/systemd.sh
StandardInput=tty-force
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
EOF
cat >"$unit/lab.target" <<EOF
[Unit]
Description=Everything is up, and the lab's scenarios run
Requires=multi-user.target
Wants=lab.service
After=multi-user.target
AllowIsolate=yes
EOF
ln -sf lab.target "$unit/default.target"

# root logs in by a key that exists only in this image.
chroot "$root" ssh-keygen -q -t ed25519 -N '' -C lab -f /root/.ssh/id_ed25519
cp "$root/root/.ssh/id_ed25519.pub" "$root/root/.ssh/authorized_keys"
chmod 700 "$root/root/.ssh"
# One host key is enough, and the quickest.
rm -f "$root"/etc/ssh/ssh_host_*
chroot "$root" ssh-keygen -q -t ed25519 -N '' -C lab -f /etc/ssh/ssh_host_ed25519_key
cat >"$root/etc/ssh/sshd_config.d/lab.conf" <<EOF
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
UseDNS no
PrintMotd no
EOF
cat >"$root/root/.ssh/config" <<EOF
Host *
	StrictHostKeyChecking no
	UserKnownHostsFile /dev/null
	LogLevel ERROR
	KexAlgorithms curve25519-sha256
	ConnectTimeout 60
	# As on a real link: a dead connection is noticed, but not at once.
	ServerAliveInterval 30
EOF
