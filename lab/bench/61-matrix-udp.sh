# The matrix, row "udp": the router of row "uniform", and UDP between two addresses on 512 source ports. igb hashes UDP by addresses
# alone as it is delivered, so all packets of a port have one queue.
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
LOAD="$FORWARD --size 20 --recipe ports"
# shellcheck disable=SC2034 # used by row
STATE="--state 'fields=--goal forward --exclude-cpus 12-15 --set eth0.rss.fields.udp4=sdfn --set eth1.rss.fields.udp4=sdfn'"
row udp
