# Routing rate by queues, as in Red Hat's slides by threads: 1 to 6 queues per port, one CPU each.
# hosts: router
# kernels: all
# timeout: 400
. /h/lib.sh
. /h/bench.sh

router_up
set --
for n in $(pick "2 3 4 6" "2 6"); do
	set -- "$@" --state "$n=--goal forward --exclude-cpus 6-7 --queues $n --allow-disruption"
done
measured queues forward $FORWARD --size 20 --rate 10000 --base "1=--goal forward --exclude-cpus 6-7 --queues 1 --allow-disruption" "$@" \
	--pairs $(pick 4 2) --calibrate $(pick 2 0) --trial 2s --warm 500ms
