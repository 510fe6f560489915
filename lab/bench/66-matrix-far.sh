# The matrix, row "far": the router of row "node", but the default affinity of interrupts has only CPUs of node 1, as with
# irqaffinity= on the kernel's command line.
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

echo f00 >/proc/irq/default_smp_affinity
router_with_cost
cost_on $COST_NS 130 150
row far
