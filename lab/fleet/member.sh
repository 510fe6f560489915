# What each guest of `cargo xtask fleet` runs: it prepares the guest for its part, then executes the commands that the
# controller leaves in the shared directory. They need no network, so they also work while the link of ssh is down.
# hosts: all
# kernels: 6.12
# timeout: 86400
. /h/lib.sh
. /h/remote.sh
F=/h/fleet

# user NAME HOME: it logs in with the key of this run
user() {
	[ "$1" = root ] || useradd --create-home --shell /bin/sh "$1"
	mkdir -p "$2/.ssh"
	cat $F/key.pub >"$2/.ssh/authorized_keys"
	chmod 700 "$2/.ssh"
	chown -R "$1" "$2/.ssh"
}
# sudo looks up the name of its host.
echo "127.0.0.1 $HOST" >>/etc/hosts
user root /root
user deploy /home/deploy
user guest /home/guest
echo 'deploy ALL=(ALL) NOPASSWD: ALL
# As guest.sh: an emulated device may take longer than ringwise waits by default.
Defaults env_keep += "RINGWISE_DEVICE_DEADLINE_MS"' >/etc/sudoers.d/fleet
echo "SetEnv RINGWISE_DEVICE_DEADLINE_MS=$RINGWISE_DEVICE_DEADLINE_MS" >/etc/ssh/sshd_config.d/fleet.conf
systemctl reload ssh.service

wait_link eth0 eth1
case $HOST in
*-competing)
	irqbalance_start --interval=5
	;;
*-cut-off)
	# Some seconds after a trial has begun the link of ssh fails.
	printf '[Path]\nPathExistsGlob=%s/trial-*.json\n' "$J" >/run/systemd/system/cut.path
	printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sleep 8\nExecStart=/bin/ip link set mgmt0 down\n' \
		>/run/systemd/system/cut.service
	systemctl daemon-reload
	systemctl start cut.path
	;;
esac
ip address add 10.0.2.15/24 dev mgmt0
wait_link mgmt0
: >$F/ready

# A thin stream from one port to the other, so that there are packets to count and interrupts to verify.
stream() {
	modprobe pktgen || return
	_pg kpktgend_0 "add_device eth1"
	for _w in "count 0" "clone_skb 0" "pkt_size 60" "delay 0" "dst 10.1.1.1" "dst_mac $(cat /sys/class/net/eth0/address)" \
		"src_min 10.9.0.1" "src_max 10.9.0.250" "flag IPSRC_RND" "ratep 100"; do
		_pg eth1 "$_w"
	done
	echo start >/proc/net/pktgen/pgctrl
}
stream >$F/stream.log 2>&1 &

# A command is complete when it has this name, and so is its result.
until [ -e $F/end ]; do
	for command in "$F"/*.command; do
		[ -e "$command" ] || continue
		name=${command%.command}
		mv "$command" "$name.sh"
		timeout 300 sh "$name.sh" >"$name.out" 2>&1 </dev/null
		echo $? >"$name.new"
		mv "$name.new" "$name.status"
	done
	sleep 0.3
done
echo stop >/proc/net/pktgen/pgctrl
ok "the guest served its commands to the end"
