#!/bin/sh
# bench: states are switched and compared, and the host is restored after its end, a signal, a kill, a lost peer, or a link that fails.
# hosts: remote
# kernels: 6.12
# areas: bench
# timeout: 900
. /h/lib.sh
. /h/remote.sh
. /h/state.sh

far_up
B=/tmp/bench
rm -rf $B
mkdir $B

# results FILE KIND: how many lines of this kind
results() {
	grep -c "\"kind\":\"$2\"" $1
}
# value: the one value that the states of this scenario switch
value() {
	ethtool -c eth2 | awk '/^rx-usecs:/ { print $2 }'
}
settled() {
	[ "$(value)" = "$FOUND" ] && ! ls /var/lib/ringwise/trial-*.json /var/lib/ringwise/expired-*.json 2>/dev/null
}
# as_found NAME: nothing is on trial, and the value is what it was
as_found() {
	# Another process may do the rollback.
	wait_for 90 settled
	same "$1: moderation is as found" "$(value)" "$FOUND"
	check "$1: nothing is on trial" sh -c '! ls /var/lib/ringwise/trial-*.json'
}
FOUND=$(value)
SLOW="slow=--set eth2.coalesce.rx-usecs=$((FOUND + 50))"
common="eth2 --yes --seed 7 --calibrate 1 --trial 1s --warm 300ms"

# ------------------------------------------------------------------ a whole one, with a known delay

ringwise bench rr $common --netns far --size 64 --threads 2 --pairs 8 --state "$SLOW" --delay-us 20000 --delay-in slow \
	--results $B/rr.jsonl --html $B/rr.html >$B/rr.out 2>$B/rr.err
same "rr: status" $? 0
same "rr: trials" "$(results $B/rr.jsonl trial)" 18
same "rr: one session, one end" "$(results $B/rr.jsonl session) $(results $B/rr.jsonl end)" "1 1"
check "rr: the end says that it is as found" grep -q '"kind":"end","restored":true' $B/rr.jsonl
check "rr: 20 ms more are worse" sh -c "grep '\"metric\":\"latency_mean\"' $B/rr.jsonl | grep -q '\"verdict\":\"worse\"'"
check "rr: and at least 20 ms" awk '/"kind":"trial"/ && /"state":"slow"/ { n++; if (!match($0, /"p50_us":[0-9.]+/) || substr($0, RSTART + 9, RLENGTH - 9) < 20000) exit 1 } END { exit n != 8 }' $B/rr.jsonl
check "rr: the page is there" grep -q '</svg>' $B/rr.html
check "rr: a virtual machine is named" grep -qi 'virtual machine' $B/rr.out
check "rr: transactions are in the history" sh -c "ringwise history | grep -q 'bench: slow'"
as_found "rr"

# ------------------------------------------------------------------ the other workloads, once each

for w in burst mixed stream receive; do
	case $w in
	mixed) more="--mix 1/2:1/2 --size 1k" ;;
	receive) more="--rate 2000" ;;
	stream) more="--protocol udp --rate 2000 --size 256" ;;
	*) more="--size 256" ;;
	esac
	ringwise bench $w $common --netns far --pairs 1 $more --results $B/$w.jsonl >$B/$w.out 2>$B/$w.err
	same "$w: status" $? 0
	check "$w: something got through" awk '/"kind":"trial"/ { n++; if (!match($0, /"done_per_s":[0-9.]+/) || substr($0, RSTART + 13, RLENGTH - 13) + 0 < 1) exit 1 } END { exit n == 0 }' $B/$w.jsonl
	as_found "$w"
done
check "receive: on the CPU of the queue" grep -q '"place":"same-cpu"' $B/receive.jsonl
check "receive: on another" grep -q '"place":"same-l3"\|"place":"same-node"\|"place":"other-node"\|"place":"other-cpu"' $B/receive.jsonl
check "receive: compared with the CPU of the queue" grep -q '"kind":"comparison".*"base":"same-cpu"' $B/receive.jsonl

# ------------------------------------------------------------------ over TCP and over ssh

echo a secret >$B/secret
echo another >$B/wrong
ip netns exec far ringwise bench serve --listen 10.2.0.2:4710 --secret-file $B/secret >$B/serve.out 2>&1 &
SERVE=$!
wait_for 20 sh -c "ip netns exec far ss -ltn | grep -q 4710"
ringwise bench rr $common --peer 10.2.0.2:4710 --secret-file $B/wrong --pairs 1 --size 64 --results $B/wrong.jsonl >$B/out 2>$B/err
same "a wrong secret: status" $? 1
check "a wrong secret: said" grep -qi secret $B/err
check "a wrong secret: no results" [ ! -e $B/wrong.jsonl ]
ringwise bench rr $common --peer 10.2.0.2:4710 --secret-file $B/secret --pairs 1 --size 64 --threads 2 --results $B/tcp.jsonl >$B/out 2>$B/err
same "by TCP: status" $? 0
same "by TCP: trials" "$(results $B/tcp.jsonl trial)" 3

# The peer vanishes while a state is applied.
ringwise bench rr $common --peer 10.2.0.2:4710 --secret-file $B/secret --pairs 50 --size 64 --threads 2 --state "$SLOW" \
	--results $B/lost.jsonl >$B/out 2>$B/err &
RUN=$!
wait_for 60 sh -c "ls /var/lib/ringwise/trial-*.json"
kill -9 $SERVE
wait $RUN
same "the peer is lost: status" $? 1
check "the peer is lost: said" grep -q "control connection is gone" $B/err
check "the peer is lost: the end says it" grep -q '"restored":true,"notes":\[".*control connection' $B/lost.jsonl
as_found "the peer is lost"

ringwise bench rr $common --peer 10.2.0.2:4711 --pairs 1 --results $B/nobody.jsonl >$B/out 2>$B/err
same "nobody listens: status" $? 1
check "nobody listens: errno" grep -q "ECONNREFUSED\|refused" $B/err

# ------------------------------------------------------------------ signals, a kill, a link that goes

run() {
	ringwise bench rr $common --netns far --pairs 50 --size 64 --threads 2 --state "$SLOW" --results $B/$1.jsonl >$B/$1.out 2>$B/$1.err &
	RUN=$!
	wait_for 60 sh -c "ls /var/lib/ringwise/trial-*.json"
	same "$1: its state was in force" "$(value)" $((FOUND + 50))
}
for sig in INT TERM HUP; do
	run $sig
	# A job of a shell without job control ignores SIGINT from its start; ringwise sets its own handler.
	kill -$sig $RUN
	wait $RUN
	same "$sig: status" $? 4
	check "$sig: the end says it" grep -q '"restored":true,"notes":\["stopped by a signal' $B/$sig.jsonl
	as_found "$sig"
done
run kill
kill -9 $RUN
wait $RUN
as_found "kill"
check "kill: the history says why" sh -c "ringwise history -o json | grep -q 'process that requested the trial is gone'"
check "kill: the report says that it was cut short" sh -c "ringwise bench report $B/kill.jsonl 2>&1 | grep -qi 'interrupted'"
check "kill: nobody answers any more" sh -c '! pgrep -f "[b]ench serve --stdio"'

run link
ip -n far link set far2 down
wait $RUN
# On QEMU's hub the link of this side stays up; only the peer can no longer send.
same "the peer's port goes: status" $? 1
check "the peer's port goes: said, with errno" grep -q "namespace far: .*ENETUNREACH" $B/link.err
ip -n far link set far2 up
wait_link eth2
as_found "the peer's port goes"

# ------------------------------------------------------------------ refused before anything is touched

bad() {
	_name=$1 _want=$2 _words=$3
	shift 3
	"$@" >$B/out 2>$B/err
	same "$_name: status" $? $_want
	check "$_name: says it" grep -qi -e "$_words" $B/err
}
bad "no peer" 2 "the other end is missing" ringwise bench rr eth2 --yes
bad "no such interface" 1 "eth9" ringwise bench rr eth9 --netns far --yes
bad "no such namespace" 1 "nowhere" ringwise bench rr eth2 --netns nowhere --yes
bad "a state without flags" 2 "is not a state" ringwise bench rr eth2 --netns far --yes --state fast
bad "an unknown flag in a state" 2 "state x" ringwise bench rr eth2 --netns far --yes --state "x=--gaol rpc"
bad "netperf is not installed" 1 "netperf" ringwise bench rr $common --netns far --driver netperf --pairs 1 --size 64 --results $B/np.jsonl
bad "every address" 2 "every address" ringwise bench serve --listen 0.0.0.0:4710
bad "results are not written over" 1 "already exists" ringwise bench rr $common --netns far --pairs 1 --size 64 --results $B/rr.jsonl
bad "nobody is asked" 6 "not a terminal" ringwise bench rr eth2 --netns far --size 64 --state "$SLOW"
check "another version" sh -c "printf '%s\n' '{\"id\":1,\"request\":{\"hello\":{\"protocol\":99,\"ringwise\":\"9.9\",\"nonce\":null}}}' | ringwise bench serve --stdio | grep -q '\"protocol\":2'"

# The control path: a session over eth2, and a state that interrupts it.
session_open way 10.2.0.1
bad "the way in" 6 "10.2.0.2\|session\|ssh" ringwise bench rr $common --netns far --pairs 1 --size 64 --state "two=--queues 2 --allow-disruption"
session_close way
as_found "refused"
