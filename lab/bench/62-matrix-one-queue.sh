# The matrix, row "one-queue": the router of row "uniform" with NICs of one queue (e1000e).
# hosts: router12-one-queue
# kernels: all
# timeout: 7200
# needs: irqbalance
# needs: cost
. /h/lib.sh
. /h/bench.sh
. /h/cost-model.sh
. /h/irqbalance.sh
. /h/matrix.sh

# shellcheck disable=SC2034 # used by the functions of bench.sh and matrix.sh
QUEUES=1
router_with_cost
row one-queue
