# Latency and throughput threads at once: as found, adaptive moderation, moderation per queue in groups.
# hosts: pair
# kernels: all
# needs: mqnic
# timeout: 400
. /h/lib.sh
. /h/bench.sh

far_up far0 mq1
ip address replace 192.0.3.1/24 dev mq0
ip -n far address replace 192.0.3.2/24 dev mq1
wait_link mq0
measured mixed mixed mq0 --netns far --size $(pick 64,1k 1k) --threads 6 --mix $(pick 1/2:1/2,2/3:1/3,1/3:2/3 1/2:1/2) \
	--state 'adaptive=--set mq0.coalesce.use-adaptive-rx=true --set mq0.coalesce.use-adaptive-tx=true' \
	--state 'per-queue=--goal mixed' \
	--pairs $(pick 3 2) --calibrate $(pick 1 0) --trial 2s --warm 300ms
