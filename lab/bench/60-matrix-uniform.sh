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

router_with_cost
row uniform
