# The matrix, row "heavy-sampled": the router and the flows of row "heavy", and one more state of ringwise: a plan by a sample of this
# load. The layout of irqbalance is made under the load, so it knows which queues are busy. So does this plan.
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
sampled_plan
# shellcheck disable=SC2034 # used by row
STATE="--state sampled=/tmp/sampled.plan"
row heavy-sampled
