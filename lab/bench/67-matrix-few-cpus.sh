# The matrix, row "few-cpus": the router of row "uniform" with two cores (four threads), so that each port has more queues than the
# router has CPUs. Kernel and loop use these CPUs only, as the other alternatives do.
# hosts: router4
# kernels: all
# timeout: 7200
# needs: irqbalance
# needs: cost
. /h/lib.sh
. /h/bench.sh
. /h/cost-model.sh
. /h/irqbalance.sh
# shellcheck disable=SC2034 # used by the functions of bench.sh and matrix.sh
GENERATOR_CPU=4 SINK_CPU=6
. /h/matrix.sh
# shellcheck disable=SC2034 # used by the functions of matrix.sh
ROUTER_CPUS=4 OTHER_CPUS=4-7 ROUTER_CORES=0,2

echo f >/proc/irq/default_smp_affinity
router_with_cost
row few-cpus
