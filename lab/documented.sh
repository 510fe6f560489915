# The documented commands that change a host or need a live one, block by block.
# A scenario of that name sources it. Made from the documents by RINGWISE_BLESS=1 cargo test -p ringwise --test all documented.

block README.md:8
run '0|3' 'ringwise check'
run '0' 'ringwise plan'
run '0' 'ringwise apply'
run '0' 'ringwise rollback 1'

block README.md:63
run '0' 'ringwise plan --goal forward'
trial 'ringwise apply --goal forward --confirm 60s'
run '0' 'ringwise confirm'
run '0' 'ringwise verify --for 5s'
run '0' 'ringwise persist'

block docs/apply.md:4
run '0' 'ringwise apply'
run '0' 'ringwise verify --for 5s'
run '0' 'ringwise history'
run '0' 'ringwise rollback 1'
run '0' 'ringwise rollback 0'
run '0' 'ringwise persist --remove'

block docs/apply.md:71
trial 'ringwise apply eth1 --goal rpc --queues 4 --allow-disruption --confirm 60s'
run '0' 'ringwise confirm'
run '0' "ringwise apply eth1 --goal rpc --health 'ping -c 3 192.0.2.1'"

block docs/apply.md:114
before 'ringwise apply --goal rpc --yes'
run '0' 'ringwise apply --measure 5s'
run '0' 'ringwise report --since 2'

block docs/apply.md:125
run '0' 'ringwise hold --cpu-latency 0 -- CMD'

block docs/capture.md:15
before 'rm host.tar.gz'
run '0' 'ringwise capture host.tar.gz --redact'
run '0' 'ringwise support s.tar.gz'
run '0' 'ringwise support -n s.tar.gz'

block docs/check.md:4
run '0|3' 'ringwise check'
run '0|3' 'ringwise check --goal rpc'
run '0|3' 'ringwise check --for 5s eth1'
run '0|3' 'ringwise check --explain A03'
run '0|3' 'ringwise check --capabilities'

block docs/check.md:84
run '0|3' 'ringwise check --accept Q14 --reason "one sender" --until 2027-03-01'

block docs/config.md:249
run '0' 'ringwise config import'
run '0' 'ringwise config import --goal forward'
run '0' 'ringwise config import --out /etc/ringwise/ringwise.toml'
run '0' 'ringwise config import --from host.tar.gz --tuned ./tuned.conf'

block docs/config.md:354
run '0|3' ringwise
run '0' "journalctl -b -1 -u 'ringwise*'"
trial 'ringwise apply --confirm 10m'
run '0' 'ringwise persist'

block docs/config.md:367
run '0' 'ringwise config export --as link ringwise.toml > /etc/systemd/network/60-ringwise-eth0.link'

block docs/daemon.md:4
run '0' 'ringwise apply'
run '0' 'ringwise persist --daemon'
run '0' 'systemctl start ringwise-daemon.service'
run '0' 'systemctl reload ringwise-daemon.service'
run '0|3' ringwise
run '0' 'ringwise daemon pause eth0'
run '0' 'ringwise daemon resume'

block docs/daemon.md:316
before 'service_runs'
run '1' 'ringwise learned --forget eth1'
run '0' 'systemctl restart ringwise-daemon.service'

block docs/daemon.md:329
before 'service_runs'
run '0' 'ringwise persist --daemon --follow off'
run '0' 'systemctl restart ringwise-daemon.service'

block docs/daemon.md:381
before 'service_runs'
run '0' 'ringwise persist --remove'
run '0' 'ringwise daemon stop --restore'
run '0' 'ringwise rollback 0'

block docs/exit-status.md:29
before 'rm host.tar.gz'
run '0' 'ringwise capture host.tar.gz --for 5s'

block docs/fleet.md:6
run '0' 'ringwise capture "$(hostname).tar.gz" --for 5s'
run '0|3' 'ringwise check --from caps/'
run '0' 'ringwise plan --goal rpc --from caps/'
run '0' 'ringwise plan --goal rpc --from caps/edge7.tar.gz'
run '0' 'ringwise config check ringwise.toml --from caps/'

block docs/fleet.md:153
run '0' 'ringwise config check ringwise.toml'
run '0' 'ringwise config check ringwise.toml --from caps/'
run '0' 'ringwise config show ringwise.toml --from caps/edge7.tar.gz'
run '0' 'ringwise plan --config ringwise.toml --from caps/edge7.tar.gz'
trial 'ringwise apply --config ringwise.toml --confirm 60s --yes'

block docs/groups.md:4
run '0' 'ringwise plan eth2 --goal mixed'
run '0' 'ringwise plan eth2 --goal mixed --latency-queues 2'
run '0' 'ringwise plan eth2 --goal mixed --sample'

block docs/groups.md:51
run '0' 'ringwise plan eth2 --goal mixed --sample 10s --out edge.plan'
trial 'ringwise apply edge.plan --confirm 60s'

block docs/helm.md:143
before 'ringwise apply --yes'
run '0' 'ringwise persist --yes'
run '0' 'ringwise persist --remove --yes'

block docs/index.md:7
run '0|3' 'ringwise check'
run '0' 'ringwise plan'
run '0' 'ringwise apply'
run '0' 'ringwise rollback 1'

block docs/knobs/host.md:4
run '0' "ringwise plan --goal rpc --set 'host.sysctl.\"net.core.netdev_budget\"=600'"
run '0' 'ringwise hold --cpu-latency 0 -- CMD'

block docs/metrics.md:4
serve 'ringwise export'
serve "ringwise export --listen '[::]:9787' eth1 eth2"
run '0' 'ringwise export --textfile /var/lib/node_exporter'
keep_on 'ringwise export --textfile /var/lib/node_exporter --interval 15s'
serve 'ringwise export --replay incident.rec'

block docs/migrate.md:6
run '0|3' 'ringwise status'
run '0' 'ringwise capture before.tar.gz'
run '0' 'ringwise plan --goal forward'
trial 'ringwise apply --goal forward --confirm 60s'
run '0' 'ringwise persist'

block docs/plan.md:164
run '0' 'ringwise plan --goal forward --sample 10s --out edge.plan'
trial 'ringwise apply edge.plan --confirm 60s'

block docs/plan.md:228
run '0' 'ringwise plan --out edge.plan --expires 7d'
trial 'ringwise apply edge.plan --confirm 60s'
run '0' 'ringwise confirm'
run '0' 'ringwise persist'

block docs/recipes/cache.md:10
run '0|3' 'ringwise check --goal rpc'
run '0' 'ringwise plan --goal rpc'
trial 'ringwise apply --goal rpc --confirm 60s'
run '0' 'ringwise verify --for 5s'
keep_on 'ringwise watch'

block docs/recipes/cache.md:82
mkdir -p /etc/ringwise
cat >/etc/ringwise/ringwise.toml <<'END'
version = 1

[host]
goal = "rpc"                    # of the other interfaces

[[interface]]
match = { name = "eth1" }
goal = "mixed"

[[interface.group]]
name = "web"
policy = "latency"
queues = 2
flows = ["tcp4 dst-port 443"]

[[interface.group]]
name = "rest"
policy = "bulk"
END
run '0' 'ringwise config check /etc/ringwise/ringwise.toml'
run '0' 'ringwise plan'
trial 'ringwise apply --confirm 60s'
run '0' 'ringwise persist'

block docs/recipes/dns.md:7
run '0|3' 'ringwise check eth0 --goal rpc --for 5s'
run '0' 'ringwise plan eth0 --goal rpc --set eth0.rss.fields.udp4=sdfn'
trial 'ringwise apply eth0 --goal rpc --set eth0.rss.fields.udp4=sdfn --confirm 60s'

block docs/recipes/dns.md:84
mkdir -p /etc/ringwise
cat >/etc/ringwise/ringwise.toml <<'END'
version = 1

[host]
goal = "rpc"
interfaces = ["eth0"]           # without this line, all interfaces of the host are tuned
# reserve = "LIST"              # if you reserved CPUs; then remove the line above

[[interface]]
match = { name = "eth0" }
rss = { fields = { udp4 = "sdfn", udp6 = "sdfn" } }
END
run '0' 'ringwise config check /etc/ringwise/ringwise.toml'
run '0' 'ringwise persist'

block docs/recipes/kubernetes.md:6
run '0' 'ringwise plan --exclude-cpus 2-3'
trial 'ringwise apply --exclude-cpus 2-3 --confirm 60s'
run '0|3' 'ringwise check'

block docs/recipes/kubernetes.md:124
trial 'ringwise apply --allow-disruption --confirm 2m --force'
run '0' 'ringwise confirm'

block docs/recipes/kubernetes.md:133
before 'three_transactions'
run '0' 'ringwise history'
run '0' 'ringwise rollback 3'
run '0' 'ringwise rollback 0'

block docs/recipes/postgresql.md:8
run '0' 'ringwise show eth1'
run '0|3' 'ringwise check eth1 --goal rpc'
run '0' 'ringwise plan eth1 --goal rpc'
trial 'ringwise apply eth1 --goal rpc --confirm 60s'
run '0' 'ringwise verify --for 5s'

block docs/recipes/postgresql.md:163
mkdir -p /etc/ringwise
cat >/etc/ringwise/ringwise.toml <<'END'
version = 1

[host]
goal = "rpc"
interfaces = ["eth1"]
END
run '0' 'ringwise config check /etc/ringwise/ringwise.toml'
run '0' 'ringwise persist'

block docs/recipes/router.md:12
run '0|3' 'ringwise check --goal forward'
run '0' 'ringwise plan --goal forward'
trial 'ringwise apply --goal forward --confirm 60s'
run '0' 'ringwise verify --for 5s'

block docs/recipes/router.md:55
trial 'ringwise apply --goal forward --allow-disruption --confirm 60s --force'

block docs/recipes/router.md:72
mkdir -p /etc/ringwise
cat >/etc/ringwise/ringwise.toml <<'END'
version = 1

[host]
goal = "forward"
interfaces = ["eth0", "eth1", "eth2"]
END
run '0' 'ringwise config check /etc/ringwise/ringwise.toml'
run '0' 'ringwise persist'
run '0' 'ringwise persist --daemon'

block docs/tour.md:162
run '0' 'ringwise apply eth1'

block docs/tour.md:182
before 'ringwise apply --yes'
run '0' 'ringwise verify --for 5s'
run '0' 'ringwise history'
run '0' 'ringwise rollback 1'

block docs/watch.md:4
keep_on 'ringwise watch'
run '0' 'ringwise watch --once'
keep_on 'ringwise watch --plain'
keep_on 'ringwise watch --per-flow eth1'
keep_on 'ringwise watch --record FILE'
keep_on 'ringwise watch --replay fixtures/watch/router16.rec'

block end
