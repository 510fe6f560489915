# The matrix, row "busy": the router of row "uniform", and a program that is always busy on each of the CPUs 0 to 3. `around` is goal
# `forward` without these CPUs.
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
for _cpu in 0 1 2 3; do
	taskset "$(printf %x $((1 << _cpu)))" sh -c 'while echo 5000; do :; done >/dev/labcost' &
done
# shellcheck disable=SC2034 # used by row
STATE="--state 'around=--goal forward --exclude-cpus 0-3,12-15'"
row busy
