# The matrix, row "heavy": the router of row "uniform", and 12 flows of the same rate, six on each port. A hash spreads so few
# unevenly.
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

router_with_cost
# shellcheck disable=SC2034 # used by row
LOAD="$FORWARD --size 20 --recipe turn --flows 6"
row heavy
