# The matrix, row "node": the router of row "uniform" on a host of two nodes. All ports are on node 0, which has four of the router's
# six cores. Packets that a CPU of node 1 handles cost 1.3 times as much.
# hosts: router12-nodes
# kernels: all
# timeout: 7200
# needs: irqbalance
# needs: cost
. /h/lib.sh
. /h/bench.sh
. /h/cost-model.sh
. /h/irqbalance.sh
. /h/matrix.sh
# The cores of node 0, for the calibration.
# shellcheck disable=SC2034 # used by matrix.sh
ROUTER_CORES=0,2,4,6

router_with_cost
cost_on $COST_NS 130 150
row node
