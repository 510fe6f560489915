//! Competing programs, the settings they would write, and what a recording keeps of them.

use crate::common;
use std::sync::Arc;

use crate::common::machine::Machine;
use ringwise_discover::competing_programs::{DEVICES, find};
use ringwise_discover::{competing_programs, forget_others};
use ringwise_model::Fact;
use ringwise_sys::{CaptureRecorder, Captured, Host};

fn programs_text(host: &dyn Host) -> Vec<String> {
    find(host)
        .details
        .iter()
        .map(|r| format!("{}: {} [{}] {}", r.name, r.sets, r.devices.join(" "), r.shown()))
        .collect()
}

fn machine() -> common::Tree {
    let mut t = Machine::new(4, 1).finish();
    t.files.retain(|p, _| !p.ends_with("/comm"));
    t.file("/proc/1/comm", "systemd\n");
    t.file("/proc/41/comm", "tuned\n");
    t.file("/proc/42/comm", "ovs-vswitchd\n");
    t.file("/proc/43/comm", "secret-program\n");
    t.file("/etc/tuned/active_profile", "router\n");
    t.file(
        "/etc/tuned/router/tuned.conf",
        "[main]\ninclude=base,router\n[mynet]\ntype=net\ndevices=eth1\nchannels=combined 4\nring=rx 2048\n",
    );
    t.file("/usr/lib/tuned/base/tuned.conf", "[scheduler]\nisolated_cores=2-3\n[sysctl]\nvm.swappiness=1\n");
    t.file(
        "/etc/systemd/network/10-nic.link",
        "[Match]\nOriginalName=eth1\n[Link]\nName=eth1\nCombinedChannels=4\nIRQAffinityPolicy=spread\n",
    );
    // Masked by the one of the same name above.
    t.file("/usr/lib/systemd/network/10-nic.link", "[Match]\nOriginalName=*\n[Link]\nRxBufferSize=max\n");
    t.file(
        "/usr/lib/systemd/network/99-default.link",
        "[Match]\nOriginalName=*\n[Link]\nMACAddressPolicy=persistent\n",
    );
    t.file("/etc/rc.local", "#!/bin/sh\nPASSWORD=hunter2\n/opt/set_irq_affinity.sh local eth1\n");
    t.file("/etc/cron.d/backup-of-acme", "0 3 * * * root backup --token hunter2\n");
    t.file("/etc/systemd/system/acme.service", "[Service]\nExecStart=/opt/acme/run --token hunter2\n");
    t.file("/etc/cron.d/queues", "@reboot root ethtool -L eth1 combined 4\n");
    t
}

#[test]
fn each_with_what_it_sets() {
    let want = [
        "ovs-vswitchd:  [] process 42",
        "script: channels [] /etc/cron.d/queues (ethtool -L)",
        "script: interrupt affinity [] /etc/rc.local (set_irq_affinity)",
        "tuned: channels, ring sizes, interrupt affinity [eth1] process 41, profile router",
        "udev .link file: channels, interrupt affinity [OriginalName=eth1] /etc/systemd/network/10-nic.link",
    ];
    let host = machine().host();
    assert_eq!(programs_text(&host), want);
    assert_eq!(competing_programs(&host), Fact::Known(vec!["tuned".into()]), "Open vSwitch moves nothing");
    assert_eq!(find(&host).irqbalance, Fact::Absent);
}

#[test]
fn a_recording_keeps_these_words_and_no_others() {
    let recorder = Arc::new(CaptureRecorder::new(machine().host()));
    let live = programs_text(recorder.as_ref());
    let mut recording = recorder.finish();
    forget_others(&mut recording);
    let text = format!("{recording:?}");
    let hidden = |s: &str| format!("{:?}", s.as_bytes());
    for secret in ["hunter2", "secret-program", "acme"] {
        let bytes = hidden(secret);
        assert!(!text.contains(secret) && !text.contains(bytes.trim_matches(['[', ']'])), "{secret}");
    }
    recording.redact();
    assert_eq!(programs_text(&Captured::from(recording)), live);
}

#[test]
fn irqbalance_without_a_socket_or_with_a_stale_one() {
    let mut t = Machine::new(4, 1).finish();
    t.files.retain(|p, _| !p.ends_with("/comm"));
    t.file("/proc/1/comm", "init\n");
    // Its process ended; the socket stayed behind.
    t.file("/run/irqbalance/irqbalance77.sock", "");
    assert_eq!(find(&t.host()).irqbalance, Fact::Absent);
    t.file("/proc/88/comm", "irqbalance\n");
    t.file("/proc/88/cmdline", "/usr/sbin/irqbalance\0-l\0/var/lib/x/ringwise-irqbalance-policy\0");
    t.file("/proc/88/cgroup", "0::/system.slice/irqbalance.service\n");
    t.file("/lib/systemd/system/irqbalance.service", "[Service]\nExecStart=/usr/sbin/irqbalance $IRQBALANCE_ARGS\n");
    t.file(
        "/etc/systemd/system/irqbalance.service.d/a.conf",
        "[Service]\nExecStart=\nExecStart=/usr/sbin/irqbalance -f \\\n --deepestcache=2\n",
    );
    t.file(DEVICES, "0000:03:00.0\n");
    let Fact::Known(b) = find(&t.host()).irqbalance else { panic!("it runs") };
    assert_eq!((b.pid, b.by_policy), (88, true));
    assert!(b.socket.is_absent() && b.banned.unread().is_some_and(|u| u.why.contains("no control socket")));
    assert_eq!(b.unit, Fact::Known("irqbalance.service".into()));
    let start = b.start.unwrap();
    assert_eq!(start.split_whitespace().collect::<Vec<_>>(), ["/usr/sbin/irqbalance", "-f", "--deepestcache=2"]);
    assert_eq!((b.kept.len(), b.addition), (1, false));
    t.file("/run/systemd/system/irqbalance.service.d/90-ringwise.conf", "[Service]\nExecStart=\nExecStart=x\n");
    let Fact::Known(b) = find(&t.host()).irqbalance else { panic!("it runs") };
    assert!(b.addition);
    assert_eq!(b.kept, ["0000:03:00.0"]);
    assert!(b.start.unwrap().contains("deepestcache"), "what we add is no part of it");
}
