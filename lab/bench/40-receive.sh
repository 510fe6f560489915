# One receiver of datagrams on the queue's own CPU, on its sibling, on another core, and on the other node.
# hosts: pair
# kernels: all
# needs: mqnic
# timeout: 200
. /h/lib.sh
. /h/bench.sh

far_up far0 mq1
ip address replace 192.0.3.1/24 dev mq0
ip -n far address replace 192.0.3.2/24 dev mq1
wait_link mq0
measured receive receive mq0 --netns far --size 32 --rate 8000 --peer-cpus 7 --pairs $(pick 4 2) --calibrate 0 --trial 2s --warm 500ms
