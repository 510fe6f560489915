//! The shell script, run by sh on a copy of the files it touches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::plans::edge3_plan;
use crate::common::*;
use ringwise_emit::script;
use ringwise_knob::{IfRefused, Reason, Setting, Step, VectorName};
use ringwise_model::*;
use ringwise_text::mask;

struct Tree {
    root: PathBuf,
    script: PathBuf,
}

impl Tree {
    /// A tree as the snapshot found the host, and the plan's script with all paths below it.
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("ringwise-script-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let s = edge3();
        Self::of(root, &edge3_plan(&s), &s)
    }

    fn of(root: PathBuf, plan: &ringwise_plan::Plan, s: &Snapshot) -> Self {
        let mut t = Self { script: root.join("plan.sh"), root };
        for n in &s.nics[1..3] {
            t.put(&format!("sys/bus/pci/devices/{}/net/{}/x", n.dev.bus_address.as_ref().unwrap(), n.name()), "");
            for v in &n.vectors {
                t.put(&format!("sys/class/net/{}/device/msi_irqs/{}", n.name(), v.irq), "msix\n");
                t.put(&format!("sys/kernel/irq/{}/actions", v.irq), &format!("{}\n", v.names[0]));
                t.put(&format!("proc/irq/{}/smp_affinity_list", v.irq), "0-15\n");
            }
            for q in &n.rx_queues {
                let set = q.rps_cpus.known().unwrap();
                t.put(
                    &format!("sys/class/net/{}/queues/rx-{}/rps_cpus", n.name(), q.id),
                    &format!("0000,0000{}\n", mask(set)),
                );
                t.put(&format!("sys/class/net/{}/queues/tx-{}/xps_cpus", n.name(), q.id), "0000,00000000\n");
            }
        }
        t.put("proc/interrupts", "           CPU0\n");
        let at = t.root.display().to_string();
        let text = script::text(plan, s).unwrap();
        // First those below which there is a sys too.
        let text = text.replace("/proc/", "\0").replace("/sys/", &format!("{at}/sys/"));
        let text = text.replace('\0', &format!("{at}/proc/"));
        let script = t.script.clone();
        fs::write(&script, text).unwrap();
        t.script = script;
        t
    }

    fn put(&self, path: &str, text: &str) {
        let p = self.root.join(path);
        fs::create_dir_all(p.parent().unwrap()).unwrap();
        fs::write(p, text).unwrap();
    }

    fn run(&self, what: &str) -> Output {
        Command::new("sh").arg(&self.script).arg(what).output().unwrap()
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap().trim().to_string()
    }

    /// Every value, masks and lists in one form.
    fn state(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        fn walk(dir: &Path, out: &mut Vec<(String, String)>) {
            for e in fs::read_dir(dir).unwrap() {
                let p = e.unwrap().path();
                if p.is_dir() {
                    walk(&p, out);
                } else if p.extension().is_none_or(|e| e != "sh") {
                    let v = fs::read_to_string(&p).unwrap().trim().replace(',', "");
                    let v = v.trim_start_matches('0').to_string();
                    out.push((p.display().to_string(), v));
                }
            }
        }
        walk(&self.root, &mut out);
        out.sort();
        out
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn text(o: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr))
}

#[test]
fn applies_twice_and_undoes() {
    let t = Tree::new("twice");
    let before = t.state();
    let o = t.run("apply");
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
    let irq = edge3().nics[1].vector_of(Dir::Rx, 4).unwrap().irq;
    assert_eq!(t.read(&format!("proc/irq/{irq}/smp_affinity_list")), "1");
    assert_eq!(t.read("sys/class/net/eth1/queues/tx-0/xps_cpus"), "101");
    assert_eq!(t.read("sys/class/net/eth2/queues/rx-7/rps_cpus"), "0");
    let o = t.run("apply");
    assert_eq!((o.status.code(), text(&o).as_str()), (Some(0), "nothing to do\n"));
    let o = t.run("undo");
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
    assert_eq!(t.state(), before);
}

#[test]
fn refuses_what_has_changed_meanwhile() {
    let t = Tree::new("moved");
    t.put("sys/class/net/eth1/queues/rx-3/rps_cpus", "00000004\n");
    let before = t.state();
    let o = t.run("apply");
    assert_eq!(o.status.code(), Some(6), "{}", text(&o));
    assert!(text(&o).contains("eth1 rx-3 rps_cpus"), "{}", text(&o));
    assert_eq!(t.state(), before);
}

#[test]
fn a_value_that_does_not_stick_puts_everything_back() {
    let t = Tree::new("stuck");
    let before = t.state();
    // A file that accepts the write and still has its old value.
    let path = t.root.join("sys/class/net/eth2/queues/rx-7/rps_cpus");
    let script = fs::read_to_string(&t.script).unwrap();
    let rigged = script.replacen("value() {", &format!(
        "value() {{\n  if [ \"$2\" = {} ] && [ \"$mode\" = set ] && [ \"$4\" = 0 ]; then wrong \"$1: written 0, reads back\"; changed=1; stop=$halt; return 0; fi\n",
        path.display()), 1);
    fs::write(&t.script, rigged).unwrap();
    let o = t.run("apply");
    assert_eq!(o.status.code(), Some(4), "{}", text(&o));
    assert_eq!(t.state(), before);
}

#[test]
fn another_device_is_not_touched() {
    let t = Tree::new("device");
    fs::remove_dir_all(t.root.join("sys/bus")).unwrap();
    let before = t.state();
    let o = t.run("apply");
    assert_eq!(o.status.code(), Some(6), "{}", text(&o));
    assert_eq!(t.state(), before);
    assert_eq!(t.run("frobnicate").status.code(), Some(2));
}

#[test]
fn an_interrupt_that_is_gone_is_named() {
    let t = Tree::new("gone");
    let irq = edge3().nics[2].vector_of(Dir::Rx, 2).unwrap().irq;
    t.put(&format!("sys/kernel/irq/{irq}/actions"), "eth2-other\n");
    let o = t.run("apply");
    assert_eq!(o.status.code(), Some(6), "{}", text(&o));
    assert!(text(&o).contains("no interrupt is named eth2-TxRx-2"), "{}", text(&o));
}

/// The parts of ethtool that the test below needs, with files for its state: `k` features, `c` moderation, `x` RSS,
/// `n` one rule. Its status is always 0.
const ETHTOOL: &str = r#"#!/bin/sh
d=${0%/*}
case $1 in
  --help) echo "context per-queue" ;;
  -k | -c | -x) cat "$d/$1" ;;
  -n) echo "8 RX rings available"; echo "Total 1 rules"; echo; cat "$d/-n" ;;
  -K) [ -e "$d/deaf" ] || sed -i "s/^\($3:\) .*/\1 $4/" "$d/-k"; echo "Actual changes:" ;;
  -X) [ "$3 $4" = "weight 3" ] && t="0 0 0 1" || t="0 1 0 1"; printf 'RX flow hash:\n    0:      %s\n' "$t" >"$d/-x" ;;
  -C) shift 2
    # Like some drivers: times are not taken together with adaptive moderation.
    case "$*" in *adaptive*usecs*|*usecs*adaptive*) echo "Invalid argument" >&2; exit 1 ;; esac
    while [ $# -gt 1 ]; do
      case $1 in adaptive-rx) sed -i "s/^Adaptive RX: [a-z]*/Adaptive RX: $2/" "$d/-c" ;; *) sed -i "s/^$1: .*/$1: $2/" "$d/-c" ;; esac
      shift 2
    done ;;
  -N) case $3 in
    delete) : >"$d/-n" ;;
    *) printf 'Filter: %s\n\tRule Type: TCP over IPv4\n\tDest port: %s mask: 0x0\n\tTOS: 0x0 mask: 0xff\n\tAction: Direct to queue %s\n' "${10}" "$6" "$8" >"$d/-n" ;;
    esac ;;
esac
exit 0
"#;

/// Settings of ethtool and files on eth1 only.
fn knobs(s: &mut Snapshot) -> Vec<Setting> {
    let dev = || "eth1".to_string();
    let map = |list: &[(&str, u32)]| list.iter().map(|(k, v)| (k.to_string(), *v)).collect();
    let n = &mut s.nics[1];
    n.coalesce = Fact::Known(Coalesce(map(&[("rx-usecs", 3), ("use-adaptive-rx", 1)])));
    n.features = Fact::Known([("rx-gro".to_string(), Feature { on: true, wanted: true, fixed: false })].into());
    n.rules = Fact::Known(Rules { capacity: 8, chooses_location: false, rules: Default::default() });
    let table = vec![0, 1, 0, 1];
    n.rss = Fact::Known(Rss {
        table,
        function: Fact::Absent,
        key: Fact::Absent,
        fields: Default::default(),
        symmetric: Fact::Absent,
        contexts: Fact::Absent,
    });
    s.host.sysctls.insert("net.core.netdev_budget".into(), Fact::Known("300".into()));
    let fields = [("dst-port".to_string(), "443".to_string())].into();
    let rule = Rule { flow: "tcp4".into(), fields, action: Action::Queue(2), context: None };
    vec![
        Setting::Feature { dev: dev(), name: "rx-gro".into(), on: false },
        Setting::Coalesce { dev: dev(), params: map(&[("rx-usecs", 20), ("use-adaptive-rx", 0)]) },
        Setting::RssTable { dev: dev(), table: vec![0, 0, 0, 1] },
        Setting::FlowRule { dev: dev(), location: 7, rule: Some(rule) },
        Setting::Sysctl { name: "net.core.netdev_budget".into(), value: "600".into() },
    ]
}

fn with(name: &str, settings: impl FnOnce(&mut Snapshot) -> Vec<Setting>) -> Tree {
    let root = std::env::temp_dir().join(format!("ringwise-script-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    let mut s = edge3();
    let wanted = settings(&mut s);
    let mut plan = edge3_plan(&s);
    let step = |setting: Setting| Step {
        from: setting.address().map_or(Fact::Absent, |a| ringwise_knob::live(&s, &a)),
        setting,
        rule: "F01".into(),
        reason: Reason::Text("a test".into()),
        source: "the file".into(),
        interrupts_traffic: false,
        if_refused: IfRefused::PutBack,
        instead: Vec::new(),
    };
    plan.steps = wanted.into_iter().map(step).collect();
    let t = Tree::of(root, &plan, &s);
    t.put("proc/sys/net/core/netdev_budget", "300\n");
    t.put("bin/-k", "Features for eth1:\ngeneric-receive-offload: on\nrx-gro: on\n");
    t.put("bin/-c", "Coalesce parameters for eth1:\nAdaptive RX: on  TX: n/a\nrx-usecs: 3\n");
    t.put("bin/-x", "RX flow hash:\n    0:      0 1 0 1\n");
    t.put("bin/-n", "");
    t
}

impl Tree {
    fn with_ethtool(self) -> Self {
        use std::os::unix::fs::PermissionsExt;
        // ethtool prints its own name of the feature, and accepts the kernel's name.
        let program = ETHTOOL.replace("s/^\\($3:\\) .*/", "s/^\\(generic-receive-offload:\\) .*/");
        self.put("bin/ethtool", &program);
        let path = self.root.join("bin/ethtool");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn run_with(&self, what: &str, env: &[(&str, &str)]) -> (Option<i32>, String) {
        let path = format!("{}:/usr/bin:/bin", self.root.join("bin").display());
        let mut c = Command::new("sh");
        c.arg(&self.script).arg(what).env("PATH", path).envs(env.iter().copied());
        let o = c.output().unwrap();
        (o.status.code(), text(&o))
    }
}

#[test]
fn what_ethtool_sets_is_read_back_and_undone() {
    let t = with("ethtool", knobs).with_ethtool();
    let before = t.state();
    let (status, said) = t.run_with("apply", &[]);
    assert_eq!(status, Some(0), "{said}");
    assert!(t.read("bin/-k").contains("generic-receive-offload: off"));
    assert!(t.read("bin/-c").contains("Adaptive RX: off") && t.read("bin/-c").contains("rx-usecs: 20"));
    assert!(t.read("bin/-x").ends_with("0 0 0 1"));
    assert!(t.read("bin/-n").contains("Filter: 7"));
    assert_eq!(t.read("proc/sys/net/core/netdev_budget"), "600");
    assert_eq!(t.run_with("apply", &[]), (Some(0), "nothing to do\n".into()));
    let (status, said) = t.run_with("undo", &[]);
    assert_eq!(status, Some(0), "{said}");
    // Adaptive moderation changes the value itself, so the last value differs from the first.
    t.put("bin/-c", &t.read("bin/-c").replace("rx-usecs: 20", "rx-usecs: 3"));
    assert_eq!(t.state(), before);
}

#[test]
fn ethtools_status_is_not_believed() {
    let t = with("deaf", knobs).with_ethtool();
    let before = t.state();
    t.put("bin/deaf", "");
    let (status, said) = t.run_with("apply", &[]);
    assert_eq!(status, Some(4), "{said}");
    assert!(said.contains("eth1 rx-gro off: not done; ethtool accepted it, but reads back another value"), "{said}");
    fs::remove_file(t.root.join("bin/deaf")).unwrap();
    assert_eq!(t.state(), before);
}

#[test]
fn without_ethtool_nothing_is_written() {
    let t = with("bare", knobs);
    let before = t.state();
    let bare = t.root.join("empty");
    let o = Command::new("/bin/sh").arg(&t.script).arg("apply").env("PATH", bare).output().unwrap();
    assert_eq!(
        (o.status.code(), text(&o).as_str()),
        (Some(6), "ethtool is needed but not installed; nothing was touched\n")
    );
    assert_eq!(t.state(), before);
}

#[test]
fn settings_that_only_netlink_writes_are_reported_first() {
    let t = with("netlink", |s| {
        let mut all = knobs(s);
        let values = NapiValues { defer_hard_irqs: Some(2), ..NapiValues::default() };
        all.push(Setting::Napi { dev: "eth1".into(), of: VectorName::Rx(3), values });
        all
    })
    .with_ethtool();
    let before = t.state();
    let (status, said) = t.run_with("apply", &[]);
    assert_eq!(status, Some(6), "{said}");
    assert!(said.contains("eth1 NAPI rx-3: defer-hard-irqs 2"), "{said}");
    assert_eq!(t.state(), before);
    let (status, said) = t.run_with("apply", &[("PARTIAL", "1")]);
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("applied, except what this script cannot write"), "{said}");
    assert_eq!(t.read("proc/sys/net/core/netdev_budget"), "600");
}

/// A driver that reports only transmit channels keeps its receive queues. The script contains their number and not 0, by
/// which no entry of a table could be divided.
#[test]
fn receive_queues_that_the_driver_does_not_count_stay() {
    let mut s = edge3();
    let n = s.nics.iter_mut().find(|n| n.name() == "eth1").unwrap();
    let receive = n.rx_queues.len();
    let tx = Some(Count { now: 8, max: 8 });
    n.channels = Fact::Known(Channels { rx: None, tx, combined: None, other: None });
    let mut plan = edge3_plan(&s);
    let setting = Setting::Channels { dev: "eth1".into(), rx: None, tx: Some(4), combined: None };
    let from = Fact::Known(Setting::Channels { dev: "eth1".into(), rx: None, tx: Some(8), combined: None });
    let step = Step { setting, from, interrupts_traffic: true, ..plan.steps[0].clone() };
    plan.steps = vec![step];
    let text = script::text(&plan, &s).unwrap();
    assert!(text.contains(&format!("channels {receive} ")), "{text}");
    assert!(!text.contains("channels 0 "), "{text}");
}
