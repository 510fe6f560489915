#!/bin/sh
# More of 100-facts: messages of refusals, rounding, tables, defaults. This proves behaviours of the simulated host.
# hosts: router16 small2 isolated
# kernels: all
# timeout: 180
. /h/lib.sh
. /h/state.sh

table() { ethtool -x $1 2>/dev/null | awk '/^ *[0-9]+:/ { for (i = 2; i <= NF; i++) printf "%s ", $i }'; }
rings() { ethtool -g $1 | awk -v k="$2:" '$1 == k { v = $2 } END { print v }'; }
usecs() { ethtool -c $1 | awk '/^rx-usecs:/ { print $2 }'; }
# round N: a table of 128 entries that uses N queues in turn
round() { seq 0 127 | awk -v n=$1 '{ printf "%s ", $1 % n }'; }
# refuses NAME WORDS COMMAND...: the command fails with this message
refuses() {
	_title=$1 _words=$2
	shift 2
	if _said=$("$@" 2>&1); then
		not_ok "$_title" "$* was accepted"
	elif echo "$_said" | grep -qF -- "$_words"; then
		ok "$_title"
	else
		not_ok "$_title" "$* said: $(echo "$_said" | tr '\n' ' ')"
	fi
}
kernel=$(uname -r)
since() { # since A.B
	_k=${kernel%%.*} _r=${kernel#*.}
	_r=${_r%%.*}
	[ "$_k" -gt "${1%.*}" ] || { [ "$_k" = "${1%.*}" ] && [ "$_r" -ge "${1#*.}" ]; }
}

igb=$(awk '$3 == "igb" { print $2; exit }' /h/nics)
links $igb
max=$(ls -d /sys/class/net/$igb/queues/rx-* | wc -l)

# --- messages of the kernel
refuses "channels: above the maximum" "requested channel count exceeds maximum" ethtool -L $igb combined 99
refuses "channels: none" "requested channel counts would result in no RX or TX channel being configured" \
	ethtool -L $igb combined 0
refuses "rings: above the maximum" "requested ring size exceeds maximum" ethtool -G $igb rx 9999
refuses "moderation: an unsupported parameter" "cannot modify an unsupported parameter" ethtool -C $igb sample-interval 3
was=$(usecs $igb)
refuses "igb: moderation above 10000 us" "Invalid argument" ethtool -C $igb rx-usecs 10001
[ $max = 8 ] && refuses "igb: tx-usecs of pairs" "Invalid argument" ethtool -C $igb tx-usecs 77
same "igb: refused moderation changes nothing" "$(usecs $igb)" "$was"
links $igb
refuses "RSS: a queue that does not exist" "Invalid argument" ethtool -X $igb start $max equal 1
ethtool -X $igb start 1 equal 1
ethtool -X $igb default
same "igb: the kernel's default table goes round" "$(table $igb)" "$(round $max)"

# --- CPUs of new vectors
if [ "$HOST" = router16 ]; then
	for dev in eth0 eth1; do
		links $dev
		near=$(cat $(pci_of $dev)/local_cpulist)
		ethtool -L $dev combined 4
		ethtool -L $dev combined 8
		links $dev
		same "$dev: fresh vectors may go to the CPUs of its node" \
			"$(for q in 0 1 2 3 4 5 6 7; do asked $(irq_of $dev-TxRx-$q); done | sort -u)" "$near"
		# How evenly they are spread depends on the other interrupts of the CPUs.
		n=$(for q in 0 1 2 3 4 5 6 7; do effective $(irq_of $dev-TxRx-$q); done | sort -u | wc -l)
		check "$dev: and are spread there ($n CPUs)" [ $n -ge 4 ]
	done
fi

# --- isolated CPUs
if [ "$HOST" = isolated ]; then
	rps=/sys/class/net/$igb/queues/rx-0/rps_cpus
	same "rps_cpus: isolated CPUs among others" "$(errno_of e $rps)" ok
	same "rps_cpus: isolated CPUs among others are taken out" "$(sed 's/^0*//' $rps)" 2
	same "rps_cpus: isolated CPUs alone" "$(errno_of c $rps)" "Invalid argument"
	echo 0 >$rps
fi

# --- netdev-genl: no shell tool supports it, so a capture shows the replies
ringwise capture /tmp/c11.tar.gz >/tmp/out 2>/tmp/err
# One line for each request: its name, its device and its result.
tar xzOf /tmp/c11.tar.gz kernel.json | tr -d ' \n' | sed 's/{"kind":/\n&/g' >/tmp/kernel11
recorded() { grep "\"name\":\"$1\",\"dev\":\"$2\"" /tmp/kernel11 | head -1; }
for dev in $(awk '{ print $2 }' /h/nics); do
	[ -e /sys/class/net/$dev ] || continue
	if since 6.8; then
		case $(recorded queue-get $dev) in
		*'"errno"'* | "") not_ok "netdev-genl: $dev lists its queues" "$(recorded queue-get $dev | cut -c1-200)" ;;
		*) ok "netdev-genl: $dev lists its queues" ;;
		esac
		linked=$(recorded napi-get $dev | wc -l)
		case $(driver_of $dev) in
		mqnic) same "netdev-genl: $dev links them to NAPI instances" $linked 1 ;;
		vmxnet3) same "netdev-genl: $dev does not link them" $linked 0 ;;
		esac
		case $(recorded dev-get $dev) in
		*'"errno"'* | "") not_ok "netdev-genl: $dev reports values for XDP" "$(recorded dev-get $dev | cut -c1-200)" ;;
		*) ok "netdev-genl: $dev reports values for XDP" ;;
		esac
	else
		case $(recorded queue-get $dev) in
		*'"errno":2,'*) ok "netdev-genl: not before 6.8" ;;
		*) not_ok "netdev-genl: not before 6.8" "$(recorded queue-get $dev | cut -c1-200)" ;;
		esac
	fi
done

# --- vmxnet3
if [ "$HOST" = router16 ]; then
	refuses "vmxnet3: -L" "Operation not supported" ethtool -L eth2 combined 4
	n=$(ls -d /sys/class/net/eth2/queues/rx-* | wc -l)
	ethtool -G eth2 rx 512
	links eth2
	check "vmxnet3: takes a table" ethtool -X eth2 weight 3 1 0 0 0 0 0 0
	same "vmxnet3: and reads it back" "$(table eth2 | tr ' ' '\n' | sort | uniq -c | awk '$2 != "" { print $2 ":" $1 }' | tr '\n' ' ')" \
		"0:$(($(table eth2 | wc -w) * 3 / 4)) 1:$(($(table eth2 | wc -w) / 4)) "
	ethtool -G eth2 rx 100
	links eth2
	same "vmxnet3: -G rounds up to a multiple of 32" "$(rings eth2 RX)" 128
	same "vmxnet3: -G leaves the default table" "$(table eth2)" "$(seq 0 $(($(table eth2 | wc -w) - 1)) | awk -v n=$n '{ printf "%s ", $1 % n }')"
	refuses "e1000e: -L" "not supported" ethtool -L eth3 combined 1
fi

# --- virtio-net
if [ "$HOST" = small2 ]; then
	vio=$(awk '$3 == "virtio_net" { print $2; exit }' /h/nics)
	refuses "virtio: rings that are no power of two" "Cannot allocate memory" ethtool -G $vio rx 100
	same "virtio: they are as before" "$(rings $vio RX)" 256
	refuses "virtio: moderation in microseconds" "not supported" ethtool -C $vio rx-usecs 10
	ethtool -X $vio weight 3 1
	before=$(table $vio)
	ethtool -L $vio combined 2
	same "virtio: a table by hand" "$(echo $before | tr ' ' '\n' | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" "96 32 "
	ethtool -X $vio start 0 equal 1
	before=$(table $vio)
	ethtool -L $vio combined 1
	ethtool -L $vio combined 2
	same "virtio: -L keeps the table" "$(table $vio)" "$before"
	ethtool -X $vio default
	same "virtio: the kernel's default table" "$(table $vio)" "$(round 2)"
fi

# --- the test NIC
[ "$HAVE_MQNIC" = 1 ] && [ -e /sys/class/net/mq0 ] || exit 0
words="Invalid argument"
since 5.17 && words="ring size below 64"
refuses "mqnic: rings below 64" "$words" ethtool -G mq0 rx 32
ethtool -G mq0 rx 100
same "mqnic: rings go up to a power of two" "$(rings mq0 RX)" 128
ethtool -G mq0 rx 512
