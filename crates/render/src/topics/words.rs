//! Words of the output of ringwise, and the terms and options that explain them.

use crate::knob_values::KnobValues;

use super::{Topic, word};

pub(super) const TOPICS: &[Topic] = &[
    Topic {
        names: &["8/8", "queue count", "queue counts"],
        title: "column QUEUES: queues now / at most",
        body: "8/8 means 8 queues are in use and the driver supports at most 8. 4/63: 4 of at most 63. 4+4/8+8: separate \
         receive and transmit queues. 1/1 is also shown if the number is fixed; 7/? if the maximum is unknown.",
        parts: &[
            "Kernel|ethtool -l DEV",
            "Change|ringwise plan eth1 --queues 4 --allow-disruption",
            "See|ringwise help channels",
        ],
        knob: Some(KnobValues::Channels),
    },
    word(
        &["queue", "receive queue", "transmit queue", "rx queue", "tx queue"],
        "one of the parallel paths of a NIC for packets",
        "A receive queue holds packets until its CPU processes them; a transmit queue holds packets until the NIC \
         sends them. rx-3 and tx-3 are queues of one direction, TxRx-3 is a pair that shares an interrupt.",
        &[
            "Kernel|/sys/class/net/DEV/queues/rx-N and tx-N",
            "Show|ringwise show DEV; counters by queue: ringwise watch --queues",
            "See|ringwise help channels, rings, pair",
        ],
    ),
    word(
        &["ethtool"],
        "the usual program for the settings of NICs",
        "ringwise reads and changes the same settings of the kernel, and does not need ethtool. Unlike ethtool it also \
         sees what else a change resets, verifies it, and can undo it.",
        &[
            "Options|-l -L: ringwise help channels; -g -G: rings; -c -C -Q: moderation; -x -X: rss; -n -N -u -U: flow \
             rules; -k -K: features; -a -A: pause",
            "Show|driver (-i): ringwise show DEV; counters (-S): ringwise watch DEV --queues",
            "Keep|what was set with ethtool: ringwise config import writes it into a configuration file",
            "See|ringwise plan -o sh prints a plan as commands of ethtool and the shell",
        ],
    ),
    word(
        &["net shaper", "shaper", "shapers", "limits", "limit", "rate limit"],
        "net-shaper: rate limits of transmit queues inside the NIC",
        "Since Linux 6.13 a NIC can limit the rate of one transmit queue, of a scheduling group of queues, and of all \
         queues together, if its driver supports it. The limit holds whatever CPU sends.",
        &[
            "Why|A queue cannot send more than its limit, however its interrupts and CPUs are placed. A plan warns \
             about queues that are limited below the speed of the link.",
            "Kernel|generic netlink family net-shaper; ynl --family net-shaper --dump get --json '{\"ifindex\": N}'. \
             Not the same as a shaper of tc, which runs on CPUs.",
            "Show|ringwise show DEV: line limits, if something is limited; --json distinguishes: absent (the driver \
             has no limits), not_in_kernel, unknown with the errno",
            "Set|not by ringwise; rule M23 has the command that removes a limit",
            "See|rule M23; ringwise help xps, bql",
        ],
    ),
    word(
        &["pair", "txrx"],
        "a receive and a transmit queue with one interrupt",
        "Queues with the same number often share an interrupt (TxRx-3) or belong together (rx-3 and tx-3). ringwise \
         keeps both on the same CPU, so received packets and completions of sent ones are processed there.",
        &["See|rules A20 R0.12; ringwise help irq, queue"],
    ),
    word(
        &["layout", "placement"],
        "which CPU takes which queue",
        "The CPU of each queue's interrupt, and the CPUs that send and steer through it: affinity, XPS and RPS together.",
        &["Show|ringwise show DEV", "See|ringwise help matrix, irq, xps, rps"],
    ),
    word(
        &["matrix", "marks", "show marks", "×", "·", "#", "i", "-", "?", "could"],
        "the picture of ringwise show: queues by CPUs, with marks",
        "Each line is a queue, each column a CPU, ordered by node and core. × (X with --ascii): the interrupt is \
         delivered to this CPU. !: the same, but the CPU is on a remote node. #: the same, although the CPU is isolated. ·: online, and not used by this queue. \
         i: isolated. -: offline. ?: in the affinity, but it is unknown which CPU takes the interrupt.",
        &[
            "Columns|the affinity (smp_affinity_list) is the last column; per CPU counts the queues of the interface \
             on each CPU. ·(16) stands for 16 CPUs without a queue.",
            "See|ringwise help irq, remote",
        ],
    ),
    Topic {
        names: &["queues on cpu", "stacked", "shared cpu", "share a cpu"],
        title: "several queues of an interface on one CPU",
        body: "The remark \"3 queues on CPU 5\" means that the interrupts of three queues of the interface are delivered \
         to the same CPU, which is then the limit of all three while other CPUs are idle. A pending interrupt counts on the CPU that it is pinned to. \"3 queues on each of CPUs 0-7\" \
         means the same for each of these eight CPUs; CPUs with fewer queues are not named.",
        parts: &[
            "Change|ringwise plan gives each queue its own CPU as long as there are enough; if there are more queues \
             than CPUs, fewer queues: ringwise help channels",
            "Several|A plan of several interfaces spreads all their queues, so an interface may share CPUs that have few \
             queues of others. Alone, it gets a CPU for each queue: ringwise plan eth0",
            "See|rules A01 A04 A15; ringwise help irq",
        ],
        knob: Some(KnobValues::QueuesPerCpu),
    },
    word(
        &["unhashed", "not spread by flow", "pppoe", "dsl", "qinq", "esp", "ipsec", "vxlan", "wireguard", "fragments"],
        "traffic that the NIC cannot spread by flow",
        "The NIC hashes addresses and ports. Packets whose ports it does not find arrive on one queue for each pair of \
         addresses (ESP, GRE, fragments), for each peer (WireGuard), or on one queue altogether (PPPoE, two VLAN tags, \
         MPLS). Devices differ. VXLAN and Geneve are spread if the ports of UDP are hashed.",
        &[
            "Show|ringwise watch --per-flow eth1: which traffic, how much of it, and on which queue",
            "RPS|The kernel's hash covers the flow inside PPPoE, two VLAN tags, GRE and IP in IP: \
             ringwise plan --goal GOAL --set eth1.rps_cpus.0=1-3. Choose CPUs of the NIC's node, without the core of the interrupt. RPS of ppp0 \
             or of the tunnel works as well (without ringwise); of a VLAN interface not.",
            "Kept|A plan leaves the masks of a device as they are while a PPP, GRE or IP-in-IP interface may run over it (goal latency: \
             not). For boots, when ppp0 does not exist yet, put rps_cpus into the file: otherwise a plan removes RPS from a device with several \
             queues (rule Q05).",
            "Rules|Flow rules move single peers to other queues, if the driver accepts them.",
            "Peers|For WireGuard, threaded NAPI on its interface, which Linux 6.16 and later turn on; before: \
             echo 1 >/sys/class/net/wg0/threaded.",
            "See|docs/watch.md; rules Q05 Q18 Q23; ringwise help rps, rss, flow rules",
        ],
    ),
    word(
        &["pending", "not yet seen"],
        "set, but the interrupt has not moved yet",
        "The affinity is written, but on x86 without interrupt remapping (VT-d, AMD-Vi) the interrupt moves only when it is next raised. A queue without traffic \
         stays pending. This is not a failure: the setting is as planned, while show marks the CPU that took the last \
         interrupt, and rule A10 of check reports the difference. In ringwise status, the line pending lists what \
         needs you: a trial, an unfinished transaction, settings that can be restored now.",
        &[
            "Show|ringwise show DEV: line pending; ringwise plan: line Pending",
            "Traffic|An interrupt that stays pending under traffic found no free vector on its CPU: rule A10",
            "Check|ringwise verify --for 5s counts interrupts while traffic flows",
            "See|rule A10; ringwise help trial, journal, irq",
        ],
    ),
    Topic {
        names: &["pinned", "unpinned", "movable", "free to move"],
        title: "whether an interrupt is limited to one CPU",
        body: "A pinned interrupt has exactly one CPU in its affinity. One with several CPUs may move among them, because \
         the kernel, the interrupt controller or irqbalance can choose another. An interrupt that the kernel manages \
         itself cannot be moved.",
        parts: &["Change|ringwise plan pins all queue interrupts", "See|rules A02 A17; ringwise help irq, irqbalance"],
        knob: Some(KnobValues::Interrupts),
    },
    word(
        &["migration", "migrate", "migrating", "set_irq_affinity"],
        "replace a script that sets interrupts, RPS or ethtool values",
        "Five steps; the host keeps its settings until the fourth. 1. ringwise status: which scripts and units set the \
         same? 2. ringwise capture before.tar.gz. 3. ringwise plan --goal GOAL: what would change, and why? 4. ringwise \
         apply --goal GOAL --confirm 60s, then ringwise confirm. 5. Disable the script, then ringwise persist.",
        &[
            "Keep|ringwise config import --goal GOAL > new.toml: the present values as a configuration file",
            "See|docs/migrate.md; ringwise help competing, goal, trial, ringwise.toml; ringwise config import --help",
        ],
    ),
    word(
        &["monitoring", "nagios", "icinga", "alert", "alerts", "health check"],
        "what a monitoring system runs on a host",
        "ringwise: status 3 if applied settings changed or something waits for a decision. ringwise check: status 3 for an \
         error, with --fail-on warning also for a warning. systemctl is-active ringwise.service: whether the boot applied \
         the file.",
        &[
            "Metrics|ringwise export: for Prometheus",
            "Look|ringwise watch: a full screen of rates and losses",
            "See|docs/exit-status.md, docs/metrics.md, docs/alerts.md; ringwise help exit status, exit 3",
        ],
    ),
    word(
        &["fleet", "fleets", "many hosts", "several hosts"],
        "many hosts, checked and configured together",
        "ringwise capture records a host; check, plan and config check read the recordings of many hosts at once, worst \
         first. One configuration file serves different hosts: it selects interfaces by driver, bus address, MAC or label, \
         and hosts by their properties.",
        &[
            "Show|ringwise check --from caps/*.tar.gz; ringwise plan --from caps/*.tar.gz",
            "Test|ringwise config check FILE --from caps/*.tar.gz",
            "See|docs/fleet.md, docs/ansible.md, docs/helm.md; ringwise help match, configuration",
        ],
    ),
    word(
        &["match", "interfaces", "interface", "bus", "mac", "label"],
        "which interfaces a plan or a configuration entry covers",
        "By default those with a driver, queues of their own and a link. Interfaces can be named on the command \
         line; a bond, bridge or VLAN stands for the interfaces below it. In the file, interfaces in [host] \
         restricts them, and match selects the interfaces of an entry by name, driver, bus, mac or label. Names in the \
         file may contain * and ?, but no brackets.",
        &["See|docs/config.md; ringwise config --help; ringwise help no link"],
    ),
    word(
        &["ringwise.toml", "ringwise.toml(5)", "configuration file", "configuration", "config file", "version"],
        "the configuration file of a host",
        "/etc/ringwise/ringwise.toml: what ringwise plan and apply do without options, and what every boot applies after \
         ringwise persist. --config FILE names another file.",
        &[
            "Begin|ringwise config init > ringwise.toml: a file of this host with comments",
            "Check|ringwise config check FILE; with --from, on captured hosts",
            "Keys|docs/config.md; man ringwise.toml, if a package installed it; ringwise config schema; for \
             one key: ringwise help and its name",
            "See|ringwise config --help; ringwise help match, boot",
        ],
    ),
    word(
        &["host_group", "host groups", "fits partly", "not set", "cpu_count", "node_count"],
        "one configuration file for several kinds of hosts",
        "A table [host_group.NAME] overrides keys of the file on the hosts that match: by host name, drivers, number of CPUs or \
         number of nodes. ringwise config check FILE --from DIR shows which groups each recorded host is in, and what the file changes there.",
        &[
            "Columns|HOST GROUPS: the groups that match. CHANGES: settings that the file would change. NOT SET: settings of \
             the file that are not set on the host, because the device does not support them or the change interrupts traffic.",
            "Result|fits partly: some settings of the file are not set on this host. fails: the file cannot be planned there.",
            "See|docs/config.md, docs/fleet.md; ringwise config check --help; ringwise help match",
        ],
    ),
    word(
        &["placement error", "could be better", "verdict", "first line"],
        "the first line of ringwise: whether something is wrong",
        "Needs attention: a transaction, a trial, the service or the host needs a decision. Placement error: rules \
         of check report an error about the CPUs of interrupts. Could be better: they report a warning about them. \
         The first that applies is shown with the interface that is worst, and then the names of the others. If none \
         applies, the line summarizes the interrupts.",
        &[
            "Then|ringwise check shows every finding; ringwise plan the changes",
            "See|ringwise help layout, queues on cpu, remote",
        ],
    ),
    word(
        &["no link", "link down", "link up", "carrier"],
        "the interface has no carrier: no packet can pass",
        "A plan without names skips an interface whose link is down. Of those that interfaces in [host] names, it plans the \
         ones with a link, or all if none has a link. ringwise plan eth2 plans it anyway, if its interrupts exist.",
        &[
            "Later|The service sets the interface when its link comes up. After ringwise persist, each interface has a \
             unit that waits for it, one minute at most; after that run ringwise apply.",
            "Kernel|/sys/class/net/DEV/carrier and operstate",
            "See|docs/daemon.md, docs/config.md; ringwise help match, service, boot",
        ],
    ),
    word(
        &["trial", "on trial"],
        "applied, and rolled back unless you confirm",
        "ringwise apply --confirm 60s applies a plan on trial: unless ringwise confirm runs within 60 seconds after \
         the verification, the guard restores everything, even if your session or the network is gone.",
        &[
            "Use it|whenever a mistake could cut you off",
            "Show|ringwise status: line pending, ON TRIAL until ...",
            "Then|ringwise confirm keeps the changes, as root from any session; with --health CMD a command decides",
            "See|ringwise confirm --help; ringwise help guard, control path",
        ],
    ),
    word(
        &["guard", "crash", "crashes"],
        "the second process that restores everything if apply dies",
        "Before the first change ringwise starts its guard outside of your session. If apply is killed, the guard \
         restores everything at once; if it hangs, after 30 seconds; if a trial expires, at its end. It also watches \
         the transmit queues of the changed interfaces for a while. Without a guard nothing is written.",
        &["See|ringwise help trial, stuck, journal, service; ringwise apply --help"],
    ),
    word(
        &["transaction", "transactions", "id"],
        "all changes of one apply: made completely, or not at all",
        "A transaction has a number. It is written to a journal first, applied in order, read back and verified. If \
         a step fails, the earlier ones are undone.",
        &[
            "Show|ringwise history; ringwise history 3 for one",
            "Undo|ringwise rollback 3 restores the state before transaction 3; ringwise rollback 0 the state in \
             which ringwise first found the host since boot",
            "See|ringwise help journal, manual; ringwise rollback --help",
        ],
    ),
    word(
        &["journal", "journals", "unfinished", "record of transactions", "state directory"],
        "the record of a transaction, written before each step",
        "The journal holds the earlier value of every setting and the commands that restore it. It is in \
         /var/lib/ringwise (--state-dir), readable by root only. A journal is unfinished if a run was interrupted: \
         ringwise status reports it and exits with status 3.",
        &[
            "Then|ringwise recover restores what the interrupted run changed",
            "See|ringwise help transaction, guard; ringwise recover --help",
        ],
    ),
    word(
        &["drift", "drifted", "differ", "changed since", "as applied"],
        "settings that no longer have the value that was applied",
        "ringwise compares the host with what the transactions in effect have set. A setting drifts when the driver, \
         another program or a user changes it, for example because ethtool -L resets it.",
        &[
            "Show|ringwise status: line now; ringwise verify lists each setting, when it changed, and the likely \
             cause",
            "Then|ringwise apply --goal GOAL, with the goal that is applied, sets it again (--take-over for manual changes); ringwise adopt DEV keeps the new \
             value",
            "See|rule A16; ringwise help manual, irqbalance",
        ],
    ),
    word(
        &["manual", "manual change", "manual changes", "adopted", "take over"],
        "a setting that was changed outside ringwise",
        "A setting that a transaction has set and that a user or another program has changed since is a manual \
         change. ringwise does not overwrite it without a question: apply --yes keeps it, --take-over overwrites it. \
         An adopted setting is a manual change that ringwise adopt has accepted: ringwise expects its value from then on.",
        &[
            "Show|ringwise verify; plans mark steps that would undo one",
            "See|ringwise adopt --help; ringwise help drift, service",
        ],
    ),
    word(
        &["service", "mode keep", "keep", "keeps", "action", "actions", "problem", "unheard", "upgrade"],
        "ringwise daemon: it writes again what was lost",
        "A driver that is loaded again, ethtool -L or a CPU that goes offline makes a layout incomplete. The service \
         notices this and corrects it with a transaction. Manual changes stay, and apply, rollback, confirm and adopt \
         take precedence. In ringwise status, action is one of its last three transactions with its cause, problem is \
         why it cannot keep the layout at present, and unheard (-v) a notification that this kernel does not send: \
         such changes are found within 10 s.",
        &[
            "Start|ringwise persist --daemon, then systemctl start ringwise-daemon.service; after an edit of the file: systemctl \
             reload ringwise-daemon.service",
            "Log|journalctl -u ringwise-daemon",
            "Upgrade|the service is restarted; settings in effect stay",
            "Status|3 from ringwise while there is a problem",
            "See|docs/daemon.md; ringwise daemon --help; ringwise help paused, manual, boot",
        ],
    ),
    word(
        &["load", "uneven load", "follow", "observe", "act", "act_on_load", "balance", "better table"],
        "what the service finds about the load of receive queues",
        "A hash spreads flows, not work: some entries of the RSS table get more packets than others. The service looks \
         once a second. If one CPU of an interface stays much busier with packets than the others, it counts the \
         packets of each table entry for 3 s, and reports a table that would be better. The loads of such a report are \
         predicted. If no entry can move, it looks for an interrupt whose CPU serves several queues or is taken by \
         a program, and for a better CPU. With goal mixed it compares the traffic of 30 s with the groups of queues. It changes the \
         table, interrupts with XPS, the RPS mask of a single queue and groups itself only on the interfaces of act_on_load, in small steps; when the service is stopped or killed, the earlier values are restored, but not by a restart or an upgrade. An entry that takes more than a CPU can give is named, because no table can \
         split it.",
        &[
            "Show|the line load of ringwise status; daemon.json: loads",
            "Change|act_on_load = [\"eth1\"] in [host] of the file; ringwise daemon --act eth1",
            "Off|ringwise daemon --follow off; at every boot: ringwise persist --daemon --follow off",
            "See|docs/daemon.md; ringwise help rss, service, rfs, flow rules",
        ],
    ),
    word(
        &["paused", "resume", "daemon pause"],
        "interfaces that the service does not change for a while",
        "The service does not change a paused interface. ringwise daemon pause DEV lasts until ringwise daemon resume \
         DEV. If irqbalance moves interrupts back twice, or a transaction fails, the service pauses the \
         interface itself: for a minute, then twice as long each time, up to an hour.",
        &[
            "Show|ringwise status: line paused",
            "End|ringwise daemon resume ends every pause",
            "See|docs/daemon.md; ringwise help service, competing",
        ],
    ),
    word(
        &["skipped", "considered", "proposed", "disruption", "allow disruption", "interrupts traffic"],
        "in the plan, but only made with --allow-disruption",
        "Changes of channels, rings, pause frames and most features restart the device: packets are lost, and the \
         link may go down for seconds. A plan lists those that the goal proposes under \"Skipped because it interrupts \
         traffic\", with the command that includes them. Those that you requested yourself (--set, --queues, \
         configuration file) are listed first, under \"Requested but not planned because it interrupts traffic\".",
        &[
            "Set|--allow-disruption; configuration key allow_disruption in [host]",
            "Command|--allow-disruption applies to the whole plan: a command includes every listed change of the \
             interfaces that it names, or of all interfaces if it names none, not only the change above it. To allow \
             one interface, name it: ringwise plan eth1 --allow-disruption",
            "Status|plan --exit-code: 3 while a requested change is not planned. apply makes the other changes.",
            "Heading|\"Considered\" lists the interfaces of the plan, and \"Skipped:\" behind it those that are not part of it, with the \
             reason. \"Number of queues not changed\": AF_XDP sockets, an XDP program or another user of the interface \
             depends on it. Everything else of the interface is planned.",
            "See|ringwise help channels, control path",
        ],
    ),
    word(
        &["control path", "force", "ssh"],
        "the interfaces that carry your session and network mounts",
        "The control path is what must not be cut: the ssh session, the default route, network mounts, also through \
         a bond, bridge or VLAN. A change that interrupts it is refused unless --force is given together with \
         --confirm. If the route goes over ppp0, ringwise does not know the port below it: every port counts.",
        &["Show|ringwise status: column REMARK; ringwise plan: line Control path", "See|ringwise help trial, skipped"],
    ),
    word(
        &["plan marks", "~", "=", "x", "now", "on", "then"],
        "marks of a plan: what changes, what is not possible",
        "~ is a setting that changes: the present value (now) above the new one (then), below it the reason. For an \
         interrupt now has the CPUs that it may be delivered to, and on the CPU that takes it (? if unknown); without \
         the row on, each has one CPU. ! behind a CPU: it is on a remote node. x: not possible here, with the reason. [A02] is the rule of check behind the reason; the sources \
         of the rules are listed at the end. With --full, = is a setting that is already as planned. A plan compares what is configured: an interrupt \
         that is set to its CPU but has not moved there yet counts as planned, and the line Pending names it.",
        &["See|ringwise plan --help; ringwise help skipped, remote, pending"],
    ),
    word(
        &["refused", "ignored", "adjusted", "instead", "learned settings"],
        "how a driver answered a change that it did not make",
        "refused: the kernel or driver returned an error. ignored: it accepted the value and kept the old one. \
         adjusted: it set another value, for example rounded. instead: ringwise used an alternative. ringwise \
         remembers refused and ignored settings by device, driver and kernel; later plans skip them.",
        &[
            "Show|ringwise learned; --forget tries them again",
            "Status|3 if the goal needs such a setting; 4, with everything restored, if you named the setting \
             yourself and it was refused",
            "See|ringwise help strict, exit status",
        ],
    ),
    word(
        &["strict"],
        "fail if a configured setting is not possible",
        "Without it, a setting of the configuration file or of --set that the device or the kernel does not support \
         is reported in the plan, and the rest is applied. With it, the plan fails.",
        &["Set|--strict; configuration key strict in [host]", "See|docs/config.md; ringwise help refused"],
    ),
    word(
        &["side effect", "side effects", "reset"],
        "settings that a driver resets when another one changes",
        "ethtool -L, for example, resets affinity, RSS or XPS on some drivers. ringwise reads the host again after \
         such a step, sets the values again, and restores them in a rollback. In ringwise watch the mark reset means \
         that a counter went backwards.",
        &["See|docs/knobs/channels.md; ringwise help channels"],
    ),
    word(
        &["knob", "knobs", "setting", "settings"],
        "a family of kernel settings; one value of it is a setting",
        "A knob is a family of settings such as RPS, rings or interrupt affinity. A setting is one kernel value: the RPS \
         mask of queue 3 of eth1.",
        &["See|docs/knobs.md; docs/config.md"],
    ),
    word(
        &["flow"],
        "the packets of one connection",
        "Packets with the same addresses, ports and protocol. RSS sends all packets of a flow to one queue, so their \
         order is kept.",
        &["Show|ringwise explain shows the queue and the CPU of a flow", "See|ringwise help rss, flow rules, rfs"],
    ),
    word(
        &["group", "groups", "flows", "latency queues", "pair as article"],
        "queues with their own moderation, CPUs and flows",
        "A group is a set of queues of an interface. Flow rules, an RSS context or a share of the RSS table steer \
         flows to it. Goal mixed makes two groups, latency and bulk.",
        &[
            "Set|--goal mixed, with --latency-queues N, or with --sample to choose N by the traffic; configuration key group: \
             [[interface.group]]. --pair-as-article puts half of the queues on the remote node.",
            "See|docs/groups.md; rules R4.04 R4.05 R4.06; ringwise help mixed, policy",
        ],
    ),
    word(
        &["policy", "policies", "bulk", "cpu policy", "when"],
        "values of moderation for one purpose",
        "latency: 5 us receive, 10 us transmit. bulk: 62 and 122 us, for streams while the CPUs are lightly loaded. \
         cpu: 125 and 250 us, for streams while the CPUs are busy.",
        &[
            "Set|configuration key policy of a group; [[policy]] defines more; with goal mixed, --sample chooses bulk or cpu",
            "See|docs/knobs/coalesce.md; ringwise help moderation, group",
        ],
    ),
    word(
        &["role", "looks like"],
        "router or server, judged by forwarding and TCP sockets",
        "ringwise check names the role in its first line, with the facts: a host that forwards between several \
         interfaces looks like a router, one with 100 or more TCP sockets like a server. Otherwise the role is not \
         evident. --goal auto uses the role.",
        &["See|ringwise help auto, goal"],
    ),
    word(
        &["drop-in", "cpus.conf"],
        "a file that adds lines to a unit of systemd",
        "A plan of goal rpc, latency or stream prints a drop-in with the CPUs for a program: save it as \
         /etc/systemd/system/NAME.service.d/cpus.conf, where NAME.service is the unit that runs the program. ringwise \
         writes no such file.",
        &[
            "Apply|systemctl daemon-reload, then restart the unit: a running program keeps its CPUs",
            "Undo|delete the file, then the same",
            "See|man systemd.unit; ringwise help recommended",
        ],
    ),
    word(
        &["program", "programs", "recommended", "recommended cpus", "busy program", "cpuaffinity"],
        "plan: CPUs where programs should run",
        "At its end a plan recommends CPUs for a program that uses mainly one interface, and prints a systemd drop-in. A \
         program with many processes or threads, or one that uses most of the time of a CPU (top), gets all usable CPUs of \
         the node. One with few threads that are idle most of the time gets the CPUs of the interrupts, whose caches hold \
         its packets. CPUs that share a core with an interrupt are left out while the node has other cores; this is a rule of \
         thumb, not measured on your host. ringwise moves no program.",
        &["See|docs/recipes/postgresql.md; rules A05 H14 H21 H27; ringwise help local, isolated, cpus"],
    ),
    word(
        &["unknown", "not read", "could not read", "not readable", "absent"],
        "a value that could not be read, with the reason",
        "Unknown is never replaced by a default. Reasons: the value needs root, the device did not answer in time, \
         the recording does not have it, --passive skipped it. In a table, - means that this kernel or device does \
         not have the value.",
        &[
            "Then|run as root; -v lists the files and requests. Rules of check that need the value are listed as not \
             readable, not as passed.",
            "See|ringwise help recording, passive",
        ],
    ),
    word(
        &["recording", "from", "capture file", "sos"],
        "a file that reading commands use instead of this host",
        "ringwise capture records everything that ringwise reads. With --from FILE, status, show, check, plan, \
         verify, explain and help read such a file, a sos report, or a directory with proc/ and sys/.",
        &["Try|ringwise capture host.tar.gz; ringwise show --from host.tar.gz", "See|docs/capture.md, docs/sos.md"],
    ),
    word(
        &["passive"],
        "read files only, send no request to the kernel",
        "Requests (netlink, ethtool) take the kernel's network lock, so a program that changes an interface \
         meanwhile waits. --passive sends none and shows those values as unknown.",
        &["See|ringwise show --help; ringwise help unknown"],
    ),
    word(
        &["map", "irq map", "sure", "likely", "unmapped"],
        "how each interrupt was matched to its queue",
        "sure: by the kernel's own table, or by the interrupts of the device and their names. likely: with less \
         certainty, for example by names alone. A queue without a known interrupt is skipped in plans.",
        &["Show|ringwise show DEV: the line about the map", "See|rule A18; ringwise help irq"],
    ),
    word(
        &["finding", "findings", "severity", "error", "warning", "info", "rule of check", "rule id", "rule ids"],
        "what ringwise check found, by a rule",
        "error: packets are lost, or something does not work. warning: costs performance, or may do so. info: worth \
         knowing. A finding that follows from another one is listed behind it. The letter of a rule id names the subject: A \
         interrupts and their CPUs, D lost packets, F forwarding, H hardware and system, M moderation, Q queues and steering, W \
         the configuration. R and two numbers (R0.09): a rule by which plan decides a setting.",
        &[
            "Show|ringwise check; one rule: ringwise help A03; all rules: ringwise help rules",
            "Status|3 from the severity of --fail-on upwards (default: error)",
            "See|docs/rules.md; ringwise help accepted, samples",
        ],
    ),
    word(
        &["accepted", "accept", "baseline"],
        "findings that you have decided to live with",
        "An accepted finding is listed separately and does not count, until its last day.",
        &[
            "Set|ringwise check --accept Q14 --reason 'one sender' --until 2027-03-01",
            "File|/etc/ringwise/accepted.json, or --baseline FILE",
            "See|ringwise check --help",
        ],
    ),
    word(
        &["samples", "sample", "two samples", "not evaluated", "rates"],
        "rules about rates need counters of two moments",
        "Some rules compare counters, such as lost packets per second. On this host check reads them twice, 1 s \
         apart (or --for 5s), except with --passive. A capture has two samples only if it was made with ringwise capture --for 5s; otherwise these rules \
         are not evaluated. plan --sample 15s measures the traffic of the queues in another way, for every goal: docs/plan.md, docs/groups.md.",
        &["See|ringwise check --help; ringwise help finding, group"],
    ),
    word(
        &["squeeze", "squ/s", "squeezed", "softirq", "soft", "budget"],
        "the kernel stopped receiving with packets left",
        "A softirq processes received packets on the CPU that took the interrupt. It stops when its budget (packets \
         or time) is used up, even if packets are left: softnet_stat counts this as a squeeze. Rule D02 reports it \
         if it happens often.",
        &[
            "Show|ringwise watch: columns soft and squ/s",
            "Kernel|/proc/net/softnet_stat, third column",
            "See|rules D02 D14 D15; ringwise help sysctl",
        ],
    ),
    word(
        &["hot"],
        "a queue with more than 1.5 times the mean packets",
        "In ringwise watch a queue is hot if it had more than 1.5 times the mean of its direction, and at least 100 \
         packets in the interval.",
        &[
            "Column|hot of ringwise watch --plain: the busiest CPU among those that take interrupts of the interface",
            "Then|ringwise watch --per-flow DEV shows its heaviest flows; ringwise explain --sockets DEV --balance \
             proposes a better RSS table",
            "See|docs/watch.md; rule Q23",
        ],
    ),
    word(
        &["stuck", "stalled"],
        "a transmit queue that sends nothing",
        "A transmit queue is stuck if it timed out by the kernel's watchdog, or if it has bytes in flight and \
         completes none. After apply, ringwise watches the queues of changed interfaces (--watch 4s) and restores \
         everything if one completes nothing for 3 s.",
        &["Show|ringwise watch: mark stuck; ringwise verify --for 5s", "See|rule D09; ringwise help bql, guard"],
    ),
    word(
        &["line", "line rate", "mb/s"],
        "ringwise watch: share of what the link can carry",
        "The column line shows two percentages: the packets of the interval as a share of the 64-byte packets that \
         fit on the link, and the bits as a share of its speed.",
        &["See|docs/watch.md"],
    ),
    word(
        &["crossing", "crossings"],
        "ringwise explain: a change to another cache or node",
        "A crossing is a point on the path of a flow at which the data goes to a CPU with another L3 cache (|) or to a \
         remote node (||): each costs memory accesses.",
        &["See|ringwise help l3, node; docs/explain.md"],
    ),
    word(
        &["boot", "next boot", "lost at reboot", "persistence"],
        "settings are lost at reboot unless you persist them",
        "The kernel and the drivers start with their defaults. ringwise persist installs a unit that applies the \
         configuration file at every boot, ringwise persist --daemon a service that also keeps the settings. If \
         the host stops without an orderly shutdown within five minutes after a boot has tuned it, later boots skip the \
         tuning until you repeat your command (ringwise persist, or ringwise persist --daemon).",
        &["Show|ringwise status: line boot", "See|docs/config.md; ringwise persist --help"],
    ),
];
