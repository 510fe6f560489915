# Routing rate by queues, as in Red Hat's slides by threads: 1 to 6 queues per port, each on a core of its own.
# hosts: router12
# kernels: all
# timeout: 1800
# needs: cost
. /h/lib.sh
. /h/bench.sh
. /h/cost-model.sh
. /h/irqbalance.sh
. /h/matrix.sh

# shellcheck disable=SC2034 # used by router_with_cost
QUEUES=6
router_with_cost
new

queues() {
	echo "$1=--goal forward --cpus $ROUTER_CORES --queues $1 --allow-disruption"
}
set --
for n in $(pick "2 3 4 5 6" "2 6"); do
	set -- "$@" --state "$(queues $n)"
done
measured queues forward $FORWARD --size 20 --rate $OVERLOAD --base "$(queues 1)" "$@" \
	--pairs $(pick 6 2) --calibrate $(pick 2 0) --trial 3s --warm 1s
