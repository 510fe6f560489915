# The matrix, row "uniform": a router of six cores with two threads, two ports in and one out, random sources.
# hosts: router12
# kernels: all
# timeout: 7200
# needs: irqbalance
# needs: cost
. /h/lib.sh
. /h/bench.sh
. /h/cost-model.sh
. /h/irqbalance.sh
. /h/matrix.sh

router_up
cost_load eth0 eth1
cost_on $COST_NS 100 150
# shellcheck disable=SC2034 # used by calibrated and row
LOAD="$FORWARD --size 20"
short_rings
calibrated
row uniform
