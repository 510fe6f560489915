# The documented commands that change a host or need a live one, block by block.
# A scenario of that name sources it. Made from the documents by RINGWISE_BLESS=1 cargo test -p ringwise --test all documented.

block docs/bench.md:12
serve 'ringwise bench serve --listen 192.0.2.7:4710 --secret-file secret.txt --allow-target 10.2.0.0/24'

block docs/bench.md:39
serve 'ringwise bench serve --listen 127.0.0.1:4710'
run '0' 'ringwise bench rr lo --address 127.0.0.1 --peer 127.0.0.1:4710 --size 64 --threads 1 --pairs 1 --trial 300ms --results try.jsonl --calibrate 0 --warm 100ms'
run '0' 'ringwise bench report try.jsonl --svg figures'

block README.md:110
run '0' "ringwise bench rr eth1 --peer 192.0.2.7:4710 --secret-file secret.txt --state 'tuned=--goal rpc --allow-disruption' --html rr.html --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"

block docs/bench.md:17
run '0' "ringwise bench rr eth1 --peer 192.0.2.7:4710 --secret-file secret.txt --size 64,1k --state 'tuned=--goal rpc --allow-disruption' --html rr.html --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"

block docs/bench.md:23
run '0' "ringwise bench rr eth1 --ssh root@192.0.2.7 --size 64 --state 'tuned=--goal rpc' --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"

block docs/bench.md:27
run '0' "ringwise bench forward --in eth0 --out eth1 --ssh root@192.0.2.7 --gen far0 --sink far1 --find-rate --state 'tuned=--goal forward' --frame 500 --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"

block docs/bench.md:34
run '0' "ringwise bench rr eth1 --netns far --size 64 --state 'tuned=--goal rpc' --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"

block docs/bench.md:62
run '0' "ringwise bench burst eth1 --peer 192.0.2.7:4710 --size 1k --base 'layout=--goal balanced' --sweep eth1.coalesce.rx-usecs=0,10,50,125 --secret-file secret.txt --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"
run '0' 'ringwise bench stream eth1 --peer 192.0.2.7:4710 --size 16k --sweep queues=1,2,4,8 --secret-file secret.txt --pairs 1 --calibrate 0 --trial 300ms --warm 100ms'
run '0' 'ringwise bench rr eth1 --peer 192.0.2.7:4710 --size 256 --goals rpc,latency --pairs 1 --secret-file secret.txt --calibrate 0 --trial 300ms --warm 100ms'

block docs/bench.md:120
run '0' "ringwise bench forward --ssh root@192.0.2.7 --in eth1,eth2 --out eth0 --gen far1,far2 --sink far0 --base 'cpu0=--cpus 0' --state 'tuned=--goal forward --queues 6 --allow-disruption' --find-rate --pairs 1 --html forward.html --frame 500 --calibrate 0 --trial 300ms --warm 100ms"

block docs/bench.md:140
run 4 'ringwise bench forward --ssh root@192.0.2.7 --in eth1 --out eth0 --gen far1 --sink far0 --recipe turn --lead --flows 64 --size 20 --sweep queues=1,2,4,8 --pairs 1 --calibrate 0 --trial 300ms --warm 100ms'

block docs/bench.md:148
run '0' "ringwise bench rr eth1 --peer 192.0.2.7:4710 --size 1 --threads 8 --flows 100 --state 'rps=--set eth1.rps_cpus=0-3' --state 'rfs=--set eth1.rps_cpus=0-3 --set host.rfs_entries=32768 --set eth1.rps_flow_cnt=4096' --secret-file secret.txt --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"

block docs/bench.md:156
run '0' 'ringwise bench receive eth1 --peer 192.0.2.7:4710 --pairs 1 --secret-file secret.txt --calibrate 0 --trial 300ms --warm 100ms'
run '0' 'ringwise bench receive eth1 --peer 192.0.2.7:4710 --rate 200k,400k --secret-file secret.txt --pairs 1 --calibrate 0 --trial 300ms --warm 100ms'

block docs/bench.md:161
run '0' "ringwise bench rr eth1 --peer 192.0.2.7:4710 --level light,medium,heavy --trial 300ms --base 'adaptive=--set eth1.coalesce.adaptive-rx=true' --state 'latency=--set eth1.coalesce.adaptive-rx=false --set eth1.coalesce.rx-usecs=10' --secret-file secret.txt --pairs 1 --calibrate 0 --warm 100ms"
run '0' "ringwise bench burst eth1 --peer 192.0.2.7:4710 --level light,medium,heavy --base 'adaptive=--set eth1.coalesce.adaptive-rx=true' --state 'bulk=--set eth1.coalesce.adaptive-rx=false --set eth1.coalesce.rx-usecs=62' --state 'cpu=--set eth1.coalesce.adaptive-rx=false --set eth1.coalesce.rx-usecs=125' --secret-file secret.txt --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"
run '0' "ringwise bench mixed eth1 --peer 192.0.2.7:4710 --level medium,heavy --weight 0.5 --state 'groups=--goal mixed --latency-queues 2' --secret-file secret.txt --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"

block docs/bench.md:185
run '0' "ringwise bench rr eth1 --peer 192.0.2.7:4710 --size 256 --threads 8 --rate 10k,40k,80k --state 'adaptive=--set eth1.coalesce.adaptive-rx=true' --secret-file secret.txt --pairs 1 --calibrate 0 --trial 300ms --warm 100ms"

block docs/bench.md:201
run '0' "ringwise bench rr eth1 --peer 192.0.2.7:4710 --size 64 --pairs 12 --calibrate 4 --detect 99 --within 3 --seed 7 --state 'tuned=--goal rpc' --secret-file secret.txt --trial 300ms --warm 100ms"

block docs/bench.md:262
run '0' 'ringwise bench search eth1 --peer 192.0.2.7:4710 --workload rr --size 256 --threads 8 --budget 4m --allow-disruption --save found.toml --secret-file secret.txt --among moderation --trial 300ms'

block end
