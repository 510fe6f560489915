//! The shell script, run by sh on a copy of the files it touches.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::plans::edge3_plan;
use common::*;
use ringwise_cli::render::script;
use ringwise_cli::render::text::mask;
use ringwise_model::*;

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
        let text = script::text(&edge3_plan(&s), &s).unwrap();
        let text = text.replace("/sys/", &format!("{at}/sys/")).replace("/proc/", &format!("{at}/proc/"));
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
    // A file that takes what is written and still reads as before.
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
