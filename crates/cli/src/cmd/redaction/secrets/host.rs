//! A simulated host with secrets in every file and reply that ringwise reads, in its state directory and in its log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringwise_apply::{Request as Transaction, RunResult, Store};
use ringwise_discover::Options;
use ringwise_kfmt::rule::parse_rule;
use ringwise_knob::{IfRefused, Reason, Setting, Step, VectorName, live};
use ringwise_model::{
    ConfiguredBy, Fact, Flow, Goal, GroupQueues, GroupWish, Intent, IntentFlags, Knob, NapiValues, Policy, Requested,
    Rule, Rules, Wish,
};
use ringwise_sys::{Clock, Error, Host, Request, Result};
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{Sim, build};

use super::plants::{Plants, mac_text};

/// The simulated host, with planted files and replies.
pub(super) struct Planted {
    sim: Sim,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    replies: BTreeMap<String, Result<Vec<Vec<u8>>>>,
    /// By the name of the request: attributes that are appended to messages that contain these bytes.
    appended: Vec<(&'static str, Vec<u8>, Vec<u8>)>,
    /// By the name of the request: bytes that replace a part of a struct, from an offset.
    patched: Vec<(String, usize, Vec<u8>)>,
    /// Names that occur all over the host, for the log.
    pub names: Vec<String>,
    pub bus: String,
}

/// A wrapper, because `Recorder` takes a host and not a shared one.
pub(super) struct Shared(pub Arc<Planted>);

impl Clock for Shared {
    fn since_boot(&self) -> Duration {
        self.0.sim.since_boot()
    }
    fn unix_time(&self) -> u64 {
        self.0.sim.unix_time()
    }
    fn sleep(&self, time: Duration) {
        self.0.sim.sleep(time);
    }
}

impl Host for Shared {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match self.0.files.lock().unwrap().get(path) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.0.sim.read(path),
        }
    }

    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        self.0.sim.write(path, data)
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        let inner = self.0.sim.list(path);
        let below = format!("{path}/");
        let files = self.0.files.lock().unwrap();
        let more: BTreeSet<String> =
            files.keys().filter_map(|p| p.strip_prefix(&below)?.split('/').next().map(str::to_string)).collect();
        if more.is_empty() {
            return inner;
        }
        Ok(inner.unwrap_or_default().into_iter().chain(more).collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn readlink(&self, path: &str) -> Result<String> {
        self.0.sim.readlink(path)
    }

    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        let name = request.to_string();
        if let Some(reply) = self.0.replies.get(&name) {
            return reply.clone();
        }
        let mut reply = self.0.sim.kernel(request)?;
        for (_, which, more) in self.0.appended.iter().filter(|(n, ..)| *n == name) {
            let holds = |m: &&mut Vec<u8>| which.is_empty() || m.windows(which.len()).any(|w| w == &which[..]);
            let message = reply.iter_mut().find(holds).expect("the message is there");
            message.resize(message.len().next_multiple_of(4), 0);
            message.extend(more);
        }
        for (_, from, bytes) in self.0.patched.iter().filter(|(n, ..)| *n == name) {
            reply[0][*from..from + bytes.len()].copy_from_slice(bytes);
        }
        Ok(reply)
    }
}

pub(super) fn attr(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut out = [&((4 + value.len()) as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn z(text: &str) -> Vec<u8> {
    format!("{text}\0").into_bytes()
}

impl Planted {
    pub(super) fn new(p: &mut Plants) -> Self {
        let glued = p.mac("name of an interface");
        let enx = format!("enx{}", mac_text(glued).replace(':', ""));
        let mut snapshot =
            build::host(8, 2).igb("eth0", 0, 8).linked().virtio("eth1", 1, 4).igb(&enx, 0, 4).mqnic("mq1", 1, 4).done();
        let bus = snapshot.nic("eth0").unwrap().dev.bus_address.clone().unwrap();
        let mq1 = snapshot.nics.iter_mut().find(|n| n.name() == "mq1").unwrap();
        mq1.rules = Fact::Known(Rules { capacity: 64, chooses_location: false, rules: rules(p) });
        let sim = Sim::new(&snapshot);
        let (script, flag) = (
            p.text("path", "irqbalance's arguments", "/opt/{}/policy.sh"),
            p.text("argument", "irqbalance's arguments", "--note={}"),
        );
        sim.irqbalance(&["--foreground", "--banirq=31", &format!("--policyscript={script}"), &flag], true);
        let mut out = Self {
            sim,
            files: Mutex::default(),
            replies: BTreeMap::new(),
            appended: Vec::new(),
            patched: Vec::new(),
            names: Vec::new(),
            bus,
        };
        out.plant_files(p);
        out.plant_links(p);
        out.plant_ways(p);
        out.plant_ethtool(p, &enx);
        out
    }

    fn file(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.lock().unwrap().insert(path.into(), content.into());
    }

    fn plant_files(&mut self, p: &mut Plants) {
        let host = p.text("host name", "hostname", "web-{}");
        let domain = p.text("domain name", "hostname", "corp-{}.example");
        self.names.push(host.clone());
        self.file("/proc/sys/kernel/hostname", format!("{host}.{domain}\n"));
        let user = p.text("user name", "/proc/version", "anna{}");
        self.file(
            "/proc/version",
            format!(
                "Linux version 6.12.48 ({user}@{}) (gcc) #1 SMP\n",
                p.text("host name", "/proc/version", "build-{}")
            ),
        );
        let serial = p.text("serial number", "/proc/cpuinfo", "{}");
        self.file("/proc/cpuinfo", format!("processor\t: 0\nflags\t\t: fpu msr\nSerial\t\t: {serial}\n"));
        let at = p.exact("kernel address", "/proc/modules", |n| format!("0xffffffffc0a1{n:04x}"));
        self.file("/proc/modules", format!("igb 290816 0 - Live {at}\n"));
        self.plant_mounts(p);
        let dir = format!("/sys/bus/pci/devices/{}", self.bus);
        let mut config = vec![0u8; 512];
        (config[6], config[0x34], config[0x40], config[0x50], config[0x51]) = (0x10, 0x50, 3, 0x10, 0x40);
        config[0x104..0x10c].copy_from_slice(&p.bytes("serial number", "PCI configuration, serial number", 8));
        config[0x42..0x4a].copy_from_slice(&p.bytes("serial number", "PCI configuration, vital product data", 8));
        self.file(&format!("{dir}/config"), config);
        let label = p.text("property", "uevent", "SITE_NOTE={}\n");
        self.file("/sys/class/net/eth0/device/uevent", format!("DRIVER=igb\nPCI_SLOT_NAME={}\n{label}", self.bus));
        let address = p.v4("iSCSI connection");
        self.file("/sys/class/iscsi_connection/connection1:0/address", format!("{address}\n"));
        self.others(p);
        let token = p.text("token", "a file of the kernel with text", "token={}");
        self.file("/sys/devices/system/cpu/vulnerabilities/spectre_v9", format!("Mitigation: x, {token}\n"));
        let mac = mac_text(p.mac("a file of the kernel with text"));
        self.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", format!("tsc {mac}\n"));
    }

    fn plant_mounts(&mut self, p: &mut Plants) {
        let (filer, export) = (p.text("host name", "mounts", "filer-{}"), p.text("share", "mounts", "vol-{}"));
        let (a, user, word) =
            (p.v4("mounts"), p.text("user name", "mounts", "u{}"), p.text("password", "mounts", "pw-{}"));
        let (nas, share) = (p.text("host name", "mounts, CIFS", "nas{}"), p.text("share", "mounts, CIFS", "home{}$"));
        let (six, file) = (p.v6("mounts"), p.text("path", "mounts, credentials", "/root/{}"));
        let (disk, point) = (p.text("volume", "mounts", "vg-{}"), p.text("path", "mounts", "/srv/{}"));
        let layer = p.text("container", "mounts", "{}");
        let mon = p.v4("mounts, ceph");
        let text = format!(
            "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\n\
             {filer}:/{export} / nfs4 rw,addr={a},username={user},password={word} 0 0\n\
             //{nas}/{share} /mnt cifs rw,addr={six},credentials={file} 0 0\n\
             /dev/mapper/{disk} {point} ext4 rw 0 0\n\
             overlay /var/lib/docker overlay rw,lowerdir=/var/lib/docker/overlay2/{layer} 0 0\n\
             {mon}:6789:/ /data ceph rw,name=x 0 0\n"
        );
        self.file("/proc/self/mounts", text);
    }

    /// Settings of other programs.
    fn others(&mut self, p: &mut Plants) {
        let unit = "/usr/lib/systemd/system/irqbalance.service";
        let (about, env, word) = (
            p.text("description", "unit", "of {}"),
            p.text("environment", "unit", "HOOK_TOKEN={}"),
            p.text("argument", "unit", "--x={}"),
        );
        self.file(unit, format!("[Unit]\nDescription={about}\n[Service]\nEnvironment={env}\nExecStart=/usr/sbin/irqbalance --foreground {word}\n"));
        let pass = p.text("password", "drop-in", "PASSWORD={}");
        self.file("/etc/systemd/system/irqbalance.service.d/a.conf", format!("[Service]\nEnvironment={pass}\n"));
        let container = p.text("container", "control group", "{}");
        self.file("/proc/900/cgroup", format!("0::/docker/{container}/system.slice/irqbalance.service\n"));
        let (mac, alias, by) = (
            mac_text(p.mac(".link file")),
            p.text("alias", ".link file", "up {}"),
            p.text("host name", ".link file", "h{}"),
        );
        let link = format!("[Match]\nMACAddress={mac}\nHost={by}\n[Link]\nAlias={alias}\nRxChannels=4\n");
        self.file("/etc/systemd/network/10-nic.link", link);
        self.file("/proc/41/comm", "tuned\n");
        self.file("/etc/tuned/active_profile", "router\n");
        let (summary, path, section) = (
            p.text("description", "tuned profile", "{}"),
            p.text("path", "tuned profile", "/opt/{}.sh"),
            p.text("section", "tuned profile", "s{}"),
        );
        let text =
            format!("[main]\nsummary={summary}\n[{section}]\ntype=net\nchannels=combined 4\n[script]\nscript={path}\n");
        self.file("/etc/tuned/router/tuned.conf", text);
    }

    fn plant_links(&mut self, p: &mut Plants) {
        let mac = |p: &mut Plants, what: &str| p.mac(&format!("links, {what}"));
        let alias = p.text("alias", "links, IFALIAS", "uplink of {}");
        let names = [
            p.text("alternative name", "links, PROP_LIST", "alt{}a"),
            p.text("alternative name", "links, PROP_LIST", "alt{}b"),
        ];
        self.names.extend([alias.clone(), names[0].clone()]);
        let vf = attr(1, &attr(1, &[&0u32.to_ne_bytes()[..], &mac(p, "VFINFO_LIST"), &[0; 26]].concat()));
        let vxlan = [attr(1, &7u32.to_ne_bytes()), attr(2, &p.v4("links, LINKINFO of vxlan").octets())].concat();
        let info = [attr(1, &z("vxlan")), attr(2, &vxlan)].concat();
        let token = attr(10, &attr(7, &p.v6("links, AF_SPEC").octets()));
        let eth0 = [
            attr(1, &mac(p, "ADDRESS")),
            attr(2, &mac(p, "BROADCAST")),
            attr(54, &mac(p, "PERM_ADDRESS")),
            attr(20, &z(&alias)),
            attr(52 | 0x8000, &[attr(53, &z(&names[0])), attr(53, &z(&names[1]))].concat()),
            attr(34, &p.bytes("port id", "links, PHYS_PORT_ID", 8)),
            attr(36, &p.bytes("switch id", "links, PHYS_SWITCH_ID", 8)),
            attr(38, &z(&p.text("port name", "links, PHYS_PORT_NAME", "p{}"))),
            attr(22, &vf),
            attr(26 | 0x8000, &token),
            attr(24, &attr(1, &attr(4, p.uuid("links, VF_PORTS").as_bytes()))),
            attr(12, &p.bytes("id", "links, PROTINFO", 20)),
            attr(11, &p.bytes("id", "links, WIRELESS", 12)),
            attr(14, &p.bytes("id", "links, MAP", 32)),
            attr(62, &z(&p.text("port name", "links, DEVLINK_PORT", "pci/{}"))),
            attr(200, &z(&p.text("name", "links, an attribute of a later kernel", "{}"))),
        ];
        let member =
            [attr(4, &z("bond")), attr(5, &[attr(1, &[0]), attr(4, &mac(p, "LINKINFO of a member"))].concat())];
        let info = [info, member.concat()].concat();
        let bus = p.uuid("links, PARENT_DEV_NAME");
        let eth1 = [
            attr(18 | 0x8000, &info),
            attr(56, &z(&bus)),
            attr(57, &z("vmbus")),
            attr(20, &z(&p.text("alias", "links, IFALIAS of another", "{}"))),
        ];
        self.appended.push(("link-get (dump)", z("eth0"), eth0.concat()));
        self.appended.push(("link-get (dump)", z("eth1"), eth1.concat()));
    }

    /// Plants secrets in addresses, routes, sessions and queueing disciplines.
    fn plant_ways(&mut self, p: &mut Plants) {
        let one = |p: &mut Plants, what: &str| p.v4(&format!("addrs, {what}")).octets();
        let head = [2u8, 24, 0, 0, 2, 0, 0, 0];
        let v4 = [
            attr(1, &one(p, "ADDRESS")),
            attr(2, &one(p, "LOCAL")),
            attr(4, &one(p, "BROADCAST")),
            attr(5, &one(p, "ANYCAST")),
            attr(3, &z(&p.text("label", "addrs, LABEL", "eth0:{}"))),
        ];
        let v6 = [attr(1, &p.v6("addrs, ADDRESS").octets())];
        let addrs =
            vec![[&head[..], &v4.concat()].concat(), [&[10u8, 64, 0, 0, 2, 0, 0, 0][..], &v6.concat()].concat()];
        self.replies.insert("addr-get (dump)".into(), Ok(addrs));
        let (peer, own) = (p.v4("ssh session"), p.v4("ssh session"));
        self.replies.insert("ssh sessions".into(), Ok(vec![format!("own {peer} 51234 {own} 22").into_bytes()]));
        let hop = attr(5, &p.v4("route, MULTIPATH").octets());
        let hop = [&((8 + hop.len()) as u16).to_ne_bytes()[..], &[0, 0], &2u32.to_ne_bytes(), &hop].concat();
        let route = [
            vec![2u8, 32, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0],
            attr(4, &2u32.to_ne_bytes()),
            attr(5, &p.v4("route, GATEWAY").octets()),
            attr(7, &p.v4("route, PREFSRC").octets()),
            attr(18, &[&10u16.to_ne_bytes()[..], &p.v6("route, VIA").octets()].concat()),
            attr(9, &hop),
            attr(22, &p.bytes("encapsulation", "route, ENCAP", 16)),
        ];
        self.replies.insert(format!("route-get {peer}"), Ok(vec![route.concat()]));
        let gateway = u32::from_ne_bytes(p.v4("default routes").octets());
        let six: String = p.v6("default routes").octets().iter().map(|b| format!("{b:02x}")).collect();
        let four = format!(
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t{gateway:08X}\t0003\t0\t0\t100\t00000000\n"
        );
        let zeros = "0".repeat(32);
        let six = format!("{zeros} 00 {zeros} 00 {six} 00000400 00000001 00000000 00000003     eth0\n");
        self.replies.insert("default routes".into(), Ok(vec![four.into_bytes(), six.into_bytes()]));
        let options = attr(2, &p.bytes("options", "qdiscs", 24));
        let qdisc = [&[0u8; 4][..], &2u32.to_ne_bytes(), &0x10000u32.to_ne_bytes(), &u32::MAX.to_ne_bytes(), &[0; 4]];
        let qdisc = [qdisc.concat(), attr(1, &z("fq")), options];
        self.replies.insert("qdisc-get (dump)".into(), Ok(vec![qdisc.concat()]));
    }

    fn plant_ethtool(&mut self, p: &mut Plants, enx: &str) {
        assert!(enx.len() == 15);
        let later = |p: &mut Plants, of: &str| {
            attr(99, &z(&p.text("name", &format!("{of}, an attribute of a later kernel"), "{}")))
        };
        let mut more = vec![("channels-get eth0", [later(p, "channels"), attr(98, &p.mac("channels"))].concat())];
        more.extend([("rings-get eth0", later(p, "rings")), ("coalesce-get eth0", later(p, "coalesce"))]);
        more.extend([("features-get eth0", later(p, "features")), ("rss-get eth0", later(p, "rss"))]);
        more.extend([("queue-get eth0", attr(40, &p.mac("queues"))), ("napi-get eth0", attr(40, &p.mac("napi")))]);
        self.appended.extend(more.into_iter().map(|(n, m)| (n, Vec::new(), m)));
        let words = format!(
            "of {} at {}, serial {}",
            mac_text(p.mac("words of the kernel")),
            p.v4("words of the kernel"),
            p.text("serial number", "words of the kernel", "{}-7")
        );
        let refused = Error { words: Some(words), ..Error::errno("", 95) };
        self.replies.insert("eee-get eth0".into(), Err(refused));
        let field = |text: String| {
            let mut bytes = text.into_bytes();
            bytes.resize(32, 0);
            bytes
        };
        let key = p.text("serial number", "drvinfo, firmware", "1.2 sn={}");
        self.patched.push(("ETHTOOL_GDRVINFO eth0".into(), 68, field(key)));
        let rom = p.text("email address", "drvinfo, ROM", "{}@mail.example");
        self.patched.push(("ETHTOOL_GDRVINFO eth0".into(), 132, field(rom)));
        self.patched.push(("ETHTOOL_GDRVINFO eth0".into(), 164, p.bytes("id", "drvinfo, reserved", 12)));
        self.patched.push(("ETHTOOL_GRXFH eth0".into(), 100, p.bytes("id", "hash fields, unused", 16)));
        self.patched.push(("ETHTOOL_GRXCLSRLCNT mq1".into(), 60, p.bytes("id", "number of rules, unused", 16)));
        let note = z(&p.text("name", "irqbalance's answer", "SETUP-{}"));
        let answer = [b"SLEEP 10 IRQ 31 LOAD 0 DIFF 0 CLASS 0 BANNED 00000000 ".to_vec(), note].concat();
        self.replies.insert("irqbalance /run/irqbalance/irqbalance900.sock: setup".into(), Ok(vec![answer]));
    }
}

/// Plants flow rules of several forms.
fn rules(p: &mut Plants) -> BTreeMap<u32, Rule> {
    let (a, b, c) = (p.v4("flow rule"), p.v4("flow rule"), p.v6("flow rule"));
    let (m, n) = (mac_text(p.mac("flow rule")), mac_text(p.mac("flow rule, extension")));
    let raw = p.bytes("flow rule", "flow rule of a type without words", 52);
    let raw: String = raw.iter().map(|b| format!("{b:02x}")).collect();
    let words = [
        format!("tcp4 src-ip {a} dst-ip {b} dst-port 443 action 1"),
        format!("tcp6 dst-ip {c} action 2"),
        format!("ether src {m} action 1"),
        format!("udp4 dst-mac {n} dst-port 53 action 1"),
        format!("type-0x13 raw {raw}{}{}{} action 1", "00".repeat(20), "ff".repeat(52), "00".repeat(20)),
        "tcp4 src-ip 10.0.0.0/8 action 1".into(),
        "tcp4 src-ip 11.0.0.0/8 action 2".into(),
    ];
    (0..).zip(words).map(|(at, w)| (at, parse_rule(&w).unwrap_or_else(|e| panic!("{w}: {e}")).0)).collect()
}

/// A transaction that is in effect: its command line is part of every capture.
pub(super) fn journal(host: &Arc<Planted>, state: &Dir, p: &mut Plants) {
    let shared: Arc<dyn Host> = Arc::new(Shared(host.clone()));
    let now = ringwise_discover::snapshot(&shared, &Options::all()).unwrap();
    let setting = Setting::XpsCpus { dev: "eth0".into(), queue: 0, cpus: "1".parse().unwrap() };
    let irq = Setting::IrqCpus { dev: "eth0".into(), of: VectorName::Rx(1), cpus: "1".parse().unwrap(), on: None };
    let step = |s: &Setting| Step {
        setting: s.clone(),
        from: live(&now, &s.address().unwrap()),
        rule: "A03".into(),
        reason: Reason::NearestQueue,
        source: "kernel documentation, networking/scaling".into(),
        interrupts_traffic: false,
        if_refused: IfRefused::PutBack,
        instead: Vec::new(),
    };
    let file = p.text("path", "requested, configuration file", "/srv/{}.toml");
    let group = GroupWish {
        dev: "eth0".into(),
        name: p.text("name", "requested, group", "{}"),
        policy: p.text("name", "requested, policy of a group", "{}"),
        queues: GroupQueues::Count(1),
        cpus: None,
        weight: None,
        context: false,
        flows: vec![Flow::Program(p.text("program", "requested, flow of a group", "{}"))],
        by: ConfiguredBy::File { path: file.clone(), line: 7 },
    };
    let wish = Wish {
        dev: Some("eth0".into()),
        knob: Knob::Rings { values: ringwise_model::RingValues::sizes(Some(512), None) },
        by: ConfiguredBy::File { path: p.text("path", "requested, wish", "/srv/{}.toml"), line: 3 },
        params_by: [(
            "rx-usecs".to_string(),
            ConfiguredBy::File { path: p.text("path", "requested, parameter of a wish", "/srv/{}.toml"), line: 5 },
        )]
        .into(),
    };
    let own = Policy {
        name: group.policy.clone(),
        when: p.text("note", "requested, when a policy fits", "for {}"),
        params: [("rx-usecs".to_string(), 10)].into(),
        napi: NapiValues::default(),
    };
    let intent = Intent {
        goal: Goal::Forward,
        devs: vec!["eth0".into()],
        queues: Some(4),
        config: Some(file.clone()),
        wishes: vec![wish],
        groups: vec![group],
        policies: vec![own],
        ..Intent::default()
    };
    let flags =
        IntentFlags { devs: vec!["eth0".into()], config: Some(file), queues: Some(4), ..IntentFlags::default() };
    let request = Transaction {
        devices: vec![now.nic("eth0").unwrap().dev.clone()],
        steps: [&setting, &irq].map(step).into(),
        title: ringwise_model::Title::Goal { goal: ringwise_model::Goal::Forward },
        reason: Some("CHG-4711".into()),
        who: "root".into(),
        argv: ["ringwise", "apply", "--yes"].map(String::from).into(),
        requested: Some(Requested { flags: Some(flags), intent }),
        ..Transaction::default()
    };
    let store = Store::open(Some(&state.0)).with_socket_name(format!("ringwise-test-secrets-{}", std::process::id()));
    let o = ringwise_apply::run(&shared, &request, &store, &ringwise_apply::Policy::default(), &mut |_| {}).unwrap();
    assert_eq!(o.verdict, RunResult::Applied);
}

/// Plants secrets in files that only `support` reads.
pub(super) fn release(host: &Arc<Planted>, p: &mut Plants) {
    let url = p.text("URL", "os-release", "https://{}.example/x?key=1");
    host.file(
        "/etc/os-release",
        format!(
            "PRETTY_NAME=\"Debian 13\"\nVERSION_ID=13\nHOME_URL=\"{url}\"\nSITE={}\n",
            p.text("name", "os-release", "{}")
        ),
    );
}

/// Plants secrets in other files of the state directory.
pub(super) fn papers(state: &Dir, p: &mut Plants) {
    let raw: String = p.bytes("flow rule", "journal, raw", 52).iter().map(|b| format!("{b:02x}")).collect();
    let group = Reason::FlowOfGroup { group: p.text("name", "journal, reason of a step", "{}") };
    let by = ConfiguredBy::File { path: p.text("path", "journal, reason of a step", "/srv/{}.toml"), line: 7 };
    let step = Step {
        setting: Setting::XpsCpus { dev: "eth0".into(), queue: 0, cpus: "1".parse().unwrap() },
        from: Fact::Absent,
        rule: "W01".into(),
        reason: Reason::OfConfiguredGroup { reason: Box::new(group), by },
        source: p.text("path", "journal, source of a step", "/srv/{}.toml"),
        interrupts_traffic: false,
        if_refused: IfRefused::Skip,
        instead: Vec::new(),
    };
    let begin = serde_json::json!({
        "record": "begin", "format": 1, "tool": "0.1.0", "transaction": 2, "kind": "apply",
        "machine_id": p.bytes("machine id", "journal", 16).iter().map(|b| format!("{b:02x}")).collect::<String>(),
        "boot_id": p.uuid("journal"), "kernel": "6.12.48", "unix_time": 1_790_000_900,
        "title": format!("plan /home/{}/x.json", p.text("path", "journal, title", "{}")),
        "reason": p.text("reason", "journal, --reason", "because of {}"),
        "who": format!("root (sudo: {})", p.text("user name", "journal", "bert{}")),
        "command": format!("ringwise apply --yes --health curl --header X-Key:{}", p.text("token", "journal, command", "{}")),
        "argv": ["ringwise", "apply", "--health", format!("curl -u {}", p.text("credentials", "journal, argv", "anna:{}")),
            "--state-dir", p.text("path", "journal, argv", "{}")],
        "devices": [{ "name": "eth0", "ifindex": 2, "bus_address": null, "permanent_mac": mac_text(p.mac("journal")) }],
        "steps": [step], "start": [{
            "knob": "flow_rule", "dev": "eth0", "location": 3,
            "rule": { "flow": "tcp4", "fields": { "src-ip": p.v4("journal, rule").to_string(), "raw": raw }, "action": { "queue": 1 } },
        }],
        "undo": [format!("ip -6 addr add {} dev eth0", p.v6("journal, undo"))],
    });
    let said = p.text("words of a health command", "journal", "said {} twice");
    let lines = [
        begin.to_string(),
        serde_json::json!({ "record": "trial", "ms": 1, "until_boot_ms": 1, "until_unix": 1, "boot_id": null, "who": "root" }).to_string(),
        serde_json::json!({ "record": "trial_over", "by": "health command", "why": said, "unix_time": 1 }).to_string(),
        serde_json::json!({ "record": "put_back", "why": format!("undone: {said}") }).to_string(),
        serde_json::json!({ "record": "closed", "why": format!("see {}", p.text("URL", "journal, closed", "http://{}/x")), "unix_time": 1 }).to_string(),
        format!("{{\"record\":\"confirmed\",\"by\":\"{}", p.text("user name", "torn line of a journal", "{}")),
    ];
    std::fs::write(state.0.join("tx-0002.jsonl"), lines.join("\n")).unwrap();
    let trial = serde_json::json!({ "ms": 1, "until_boot_ms": 1, "until_unix": 1, "boot_id": p.uuid("trial file"), "who": p.text("user name", "trial file", "c{}") });
    std::fs::write(state.0.join("trial-0002.json"), trial.to_string()).unwrap();
    let learned = serde_json::json!({ "format": 1, "learned": [{
        "device": { "name": "eth0", "ifindex": 2, "bus_address": null, "permanent_mac": mac_text(p.mac("learned.json")) },
        "driver": "igb", "kernel": "6.12.48", "address": { "xps_cpus": { "dev": "eth0", "queue": 5 } },
        "asked": { "knob": "xps_cpus", "dev": "eth0", "queue": 5, "cpus": "5" },
        "what": { "refused": { "errno": 22, "words": format!("no: {}", p.text("password", "learned.json, words", "password={}")) } },
        "unix_time": 1,
    }] });
    std::fs::write(state.0.join("learned.json"), learned.to_string()).unwrap();
    let found = serde_json::json!({ "format": 1, "boot_id": p.uuid("first-found.json"), "machine_id": null, "devices": [], "host": [],
        "note": p.v4("first-found.json").to_string() });
    std::fs::write(state.0.join("first-found.json"), found.to_string()).unwrap();
    let mark = serde_json::json!({ "format": 1, "boot_id": p.uuid("boot.json"), "unix_time": 1, "fate": "lived" });
    std::fs::write(state.0.join("boot.json"), mark.to_string()).unwrap();
}

/// The kernel log, with secrets.
pub(super) fn log(host: &Planted, p: &mut Plants) -> String {
    let mut out = String::new();
    let mut line = |text: String| out.push_str(&format!("<6>[   12.345678] {text}\n"));
    let header = |p: &mut Plants, what: &str| format!("{}:{}:08:00", mac_text(p.mac(what)), mac_text(p.mac(what)));
    let bus = &host.bus;
    line(format!("igb {bus} eth0: igb: eth0 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX/TX"));
    line("NETDEV WATCHDOG: eth0 (igb): transmit queue 3 timed out 5000 ms".into());
    line(format!("igb {bus}: added PHC, (PCIe:2.5Gb/s:Width x1) {}", mac_text(p.mac("driver's line"))));
    line(format!("eth0: lladdr{}up", mac_text(p.mac("driver's line, glued"))));
    line(format!("eth0: peer{}port", p.v4("driver's line, glued")));
    line(format!("eth0: via{}on", p.v6("driver's line, glued")));
    line(format!("igb {bus}: MAC={} header", header(p, "driver's line, 14 bytes")));
    let prefix = p.text("log prefix", "line of a firewall", "FW-{}");
    line(format!(
        "{prefix} IN=eth0 OUT= MAC={} SRC={} DST={} LEN=60",
        header(p, "line of a firewall"),
        p.v4("line of a firewall"),
        p.v4("line of a firewall")
    ));
    let by = (header(p, "firewall, begins with an interface"), p.v6("firewall, begins with an interface"));
    line(format!("eth0 IN=eth0 OUT= MAC={} SRC={} PROTO=UDP", by.0, by.1));
    for (kind, pattern) in [
        ("password", "password={}"),
        ("token", "X-Auth-Token: {}"),
        ("key", "key='{} x'"),
        ("secret", "client_secret={}"),
        ("password", "pass={}"),
        ("user name", "user={}"),
        ("credentials", "https://anna:{}@git.example/"),
        ("email address", "{}@mail.example"),
        ("share", "//nas/{}"),
        ("share", "filer:/vol/{}"),
        ("share", r"\\nas\{}"),
        ("serial number", "Serial Number: {}"),
        ("serial number", "serial 7{}"),
        ("path", "/home/{}/fw.bin"),
        ("target", "iqn.2001-04.com.example:{}"),
        ("key", "Zx9{}Kq81LmNoPqRs7TuVw"),
        ("host name", "db.{}.example"),
    ] {
        line(format!("igb {bus}: failed at {} now", p.text(kind, "driver's line", pattern)));
    }
    line(format!("eth0: renamed from {}", p.text("interface name", "driver's line", "{}")));
    line(format!("igb {bus}: id {}", p.uuid("driver's line")));
    let id = p.bytes("id", "driver's line", 16).iter().map(|b| format!("{b:02x}")).collect::<String>();
    line(format!("igb {bus}: id {id}"));
    line(format!("igb {bus}: guid {}", p.exact("GUID", "driver's line", |n| format!("0011:22{n:02x}:4455:6677"))));
    for name in &host.names {
        line(format!("igb {bus}: of {name} and x{name}x"));
    }
    for (kind, pattern) in [
        ("serial number", "usb 1-1: SerialNumber: {}"),
        ("process", "audit: type=1400 comm=\"{}\""),
        ("command line", "Command line: root=/dev/mapper/{} ro"),
        ("host name", "systemd[1]: Hostname set to <{}>."),
        ("address", "Bluetooth: hci0: name {}"),
    ] {
        line(p.text(kind, "line of others", pattern));
    }
    out.push_str(&format!("<30>[   13.000000] eth0: {}\n", p.text("words", "line of a program", "said {}")));
    out
}
