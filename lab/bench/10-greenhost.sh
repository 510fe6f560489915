# The router of Greenhost: all interrupts on CPU 0, as with Linux 3.2, compared with the planned layout, the placement of today's
# kernel, and irqbalance.
# hosts: router
# kernels: all
# timeout: 600
# needs: irqbalance
. /h/lib.sh
. /h/bench.sh
. /h/irqbalance.sh

router_up

all_on 0 eth0 eth1 eth2
measured greenhost forward $FORWARD --size 20 --rate $OFFERED --state "$TUNED" \
	--pairs $(pick 12 8) --calibrate $(pick 4 2) --trial 2s --warm 500ms
same "greenhost: tuned forwards more than CPU 0" "$(verdict greenhost rate tuned)" better

# By size, as in the article's table, with too few pairs for a verdict.
[ -n "$QUICK" ] || measured greenhost-sizes forward $FORWARD --frame 1000,500,250,100,60 --rate $OFFERED --state "$TUNED" \
	--pairs 2 --calibrate 0 --trial 1s --warm 500ms

# For information, without a verdict: the placement of today's kernel, and irqbalance.
fresh
measured greenhost-kernel forward $FORWARD --size 20 --rate $OFFERED --state "$TUNED" \
	--pairs $(pick 8 2) --calibrate 2 --trial 2s --warm 500ms

# irqbalance runs under load for a while and is then stopped, because states change while it runs. Its last layout is measured.
all_on 0 eth0 eth1 eth2
start
rm -f /tmp/load.jsonl
ringwise bench forward $FORWARD --size 20 --rate $OFFERED --pairs 1 --calibrate 0 --trial 12s --yes --results /tmp/load.jsonl >/tmp/load 2>&1
stop
measured greenhost-irqbalance forward $FORWARD --size 20 --rate $OFFERED --state "$TUNED" \
	--pairs $(pick 8 2) --calibrate 2 --trial 2s --warm 500ms
