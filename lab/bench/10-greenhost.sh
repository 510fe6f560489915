# The router of Greenhost: all interrupts on CPU 0, as with Linux 3.2, against a layout for six cores. What the kernel of today and
# irqbalance make of such a router is in the matrix (60-matrix-uniform.sh).
# hosts: router12
# kernels: all
# timeout: 2400
# needs: cost
. /h/lib.sh
. /h/bench.sh
. /h/cost-model.sh
. /h/irqbalance.sh
. /h/matrix.sh

# shellcheck disable=SC2034 # used by router_with_cost
QUEUES=6
router_with_cost

# `tuned` has the article's six CPUs, `reserved` leaves CPU 0 to everything else.
TUNED="tuned=--goal forward --cpus $ROUTER_CORES"
RESERVED="reserved=--goal forward --cpus ${ROUTER_CORES#0,}"

against_cpu0
measured greenhost forward $FORWARD --size 20 --rate $OVERLOAD --state "$TUNED" --state "$RESERVED" \
	--pairs 10 --calibrate 2 --trial 3s --warm 1s
same "greenhost: tuned forwards more than CPU 0" "$(verdict greenhost rate tuned)" better

[ -n "$QUICK" ] && exit
# The onset of loss. One CPU forwards 500 a second, six forward 3,000.
measured greenhost-loss forward $FORWARD --size 20 --rate 300,600,1200,2400,3600 --state "$TUNED" \
	--pairs 4 --calibrate 0 --trial 2s --warm 1s

# By frame size, as in the article's table. The model charges each packet the same, whatever its size.
measured greenhost-sizes forward $FORWARD --frame 1000,500,250,100,60 --rate $OVERLOAD --state "$TUNED" \
	--pairs 10 --calibrate 0 --trial 2s --warm 1s
