# Sourced after $P (the program), $F (the configuration) and $D (the directory of units) are set.
# old_units: the files that `ringwise persist` of version 0.1 wrote, as its code made them. The hook runs at every boot.
old_units() {
	sandbox=$(
		cat <<'EOF'
# What ringwise needs, and what is not restricted because of it:
# NET_ADMIN: netlink, ethtool and the files below /sys/class/net. SYS_NICE: CPUs of NAPI threads.
# SYS_PTRACE and DAC_READ_SEARCH: which process holds which socket (ssh sessions, programs that the configuration names),
# and whether the first process, which starts the guard, sees the same files. SYS_RESOURCE: a guard that is started
# without systemd is not the first process to be killed when memory runs out.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYS_NICE CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_SYS_RESOURCE
# Unix: systemd, irqbalance, the guard, the journal. Netlink: settings. Inet: ethtool's ioctl; no packet is sent.
RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_INET
# ProtectKernelTunables: /proc/irq, /proc/sys/net and /sys/class/net are written. ProtectControlGroups: a guard that is
# started without systemd leaves this unit's group. ProtectProc, ProcSubset: see SYS_PTRACE, and /proc/interrupts is read.
# UMask: all users may read /run/ringwise/status.json. PrivateTmp: the state directory may be in /tmp.
NoNewPrivileges=yes
ProtectSystem=full
ProtectHome=read-only
PrivateMounts=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service close_range
SystemCallFilter=~@privileged
SystemCallErrorNumber=ENOSYS
IPAddressDeny=any
EOF
	)
	cat >"$D/ringwise.service" <<EOF
# Written by ringwise persist; ringwise persist --remove takes it away.
[Unit]
Description=Tune network interfaces as configured in $F
Documentation=man:ringwise-persist(8)
After=network-pre.target network.target systemd-sysctl.service irqbalance.service tuned.service
Wants=ringwise-lived.timer

[Service]
Type=oneshot
RemainAfterExit=yes
Environment=RINGWISE_CONFIG=$F
ExecStart=$P apply --config $F --yes --boot
ExecStop=$P persist --lived
TimeoutStartSec=3min

$sandbox

[Install]
WantedBy=multi-user.target
EOF
	cat >"$D/ringwise@.service" <<EOF
# Written by ringwise persist; ringwise persist --remove takes it away.
[Unit]
Description=Tune network interfaces after %i appeared
Documentation=man:ringwise-persist(8)
After=ringwise.service network-pre.target
Before=ringwise-lived.timer
Wants=ringwise-lived.timer

[Service]
Type=oneshot
ExecStart=$P apply --config $F --yes --boot --late %i
TimeoutStartSec=5min

$sandbox
EOF
	cat >"$D/ringwise-lived.service" <<EOF
# Written by ringwise persist; ringwise persist --remove takes it away.
[Unit]
Description=Record that this boot outlived the tuning of its network interfaces

[Service]
Type=oneshot
ExecStart=$P persist --lived

CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX
PrivateNetwork=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
NoNewPrivileges=yes
ProtectSystem=full
ProtectHome=read-only
PrivateMounts=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service close_range
SystemCallFilter=~@privileged
SystemCallErrorNumber=ENOSYS
IPAddressDeny=any
EOF
	cat >"$D/ringwise-lived.timer" <<EOF
# Written by ringwise persist; ringwise persist --remove takes it away.
[Unit]
Description=Wait five minutes after network interfaces were tuned
After=ringwise.service

[Timer]
OnActiveSec=5min
AccuracySec=1s
RemainAfterElapse=no
EOF
	cat >"/etc/udev/rules.d/81-ringwise.rules" <<'EOF'
# Written by ringwise persist; ringwise persist --remove takes it away.
ACTION=="add|move", SUBSYSTEM=="net", TEST=="device/driver", TAG+="systemd", ENV{SYSTEMD_WANTS}+="ringwise@$name.service"
EOF
	ln -sf "$D/ringwise.service" "$D/multi-user.target.wants/ringwise.service"
}
