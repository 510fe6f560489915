# The matrix, row "heavy-act": the router and the flows of row "heavy", and one more state of ringwise: the layout that the service
# reached, which followed this load for two minutes.
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
acted_layout
# shellcheck disable=SC2034 # used by row
STATE="--state 'acted=$(cat /tmp/acted)'"
row heavy-act
