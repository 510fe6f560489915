//! A tree in which any one file or reply was removed, forbidden or damaged is still read, and the result lists what
//! is missing.

use crate::common::Tree;
use crate::common::machine::{Machine, NicPlan, eth1_plan};
use ringwise_discover::{Options, snapshot};
use ringwise_model::Snapshot;

fn tree(foreign: bool) -> Tree {
    let mut m = Machine::new(8, 2);
    let plan = eth1_plan("igb");
    m.nic(&plan);
    let virtio = ["virtio4-config", "virtio4-input.0", "virtio4-output.0"].map(str::to_string).to_vec();
    m.nic(&NicPlan { name: "eth2", driver: "virtio_net", bus: "0000:04:00.0", queues: 1, vectors: virtio, ..plan });
    let mut t = m.finish();
    t.foreign = foreign;
    t
}

fn read(t: &Tree) -> Snapshot {
    let s = snapshot(&t.shared(), &Options::all()).unwrap();
    // Nothing is lost in JSON.
    assert_eq!(serde_json::from_slice::<Snapshot>(&serde_json::to_vec(&s).unwrap()).unwrap(), s);
    s
}

/// Everything that the snapshot lists as unread.
fn unread(s: &Snapshot) -> Vec<String> {
    s.unread.iter().chain(s.nics.iter().flat_map(|n| &n.unread)).map(|u| format!("{} {}", u.what, u.why)).collect()
}

#[test]
fn any_one_file_less() {
    for foreign in [false, true] {
        let whole = tree(foreign);
        for path in whole.files.keys().chain(whole.links.keys()) {
            let mut t = whole.clone();
            t.files.remove(path);
            t.links.remove(path);
            let s = read(&t);
            assert!(s.nics.len() >= 3, "without {path}");
        }
    }
}

#[test]
fn any_one_forbidden_file_is_reported_with_its_errno() {
    let whole = tree(false);
    // Read for other ends, with another file saying the same, or not at all.
    let silent = ["/cache/", "/smp_affinity", "/dmi/", "/comm", "/uevent", "/msi_irqs/"];
    let before = unread(&read(&whole)).len();
    for path in whole.files.keys().filter(|p| !silent.iter().any(|s| p.contains(s))) {
        let mut t = whole.clone();
        t.error(path.clone(), 13);
        let s = read(&t);
        let listed = unread(&s);
        let name = path.rsplit('/').next().unwrap();
        // Of siblings and caches each domain is read once, from its first member.
        if path.contains("thread_siblings_list") && listed.len() == before {
            continue;
        }
        // What the dump contains need not be read again, but is still listed.
        assert!(listed.iter().any(|u| u.contains(name) && u.contains("needs root")), "{path}: {listed:?}");
    }
}

#[test]
fn any_one_file_spoilt_or_reply_torn() {
    let whole = tree(false);
    for path in whole.files.keys() {
        for junk in ["", "\0\0\0", "99999999999999999999", "zz,,,\n-1-\n"] {
            let mut t = whole.clone();
            t.file(path.clone(), junk);
            read(&t);
        }
    }
    for request in whole.kernel.keys() {
        let mut t = whole.clone();
        t.kernel.insert(request.clone(), Err(1));
        let listed = unread(&read(&t));
        assert!(listed.iter().any(|u| u.contains("needs root")), "{request}: {listed:?}");
        for reply in [vec![], vec![vec![]], vec![vec![5, 0, 1]], vec![vec![0xff; 40]]] {
            let mut t = whole.clone();
            t.kernel.insert(request.clone(), Ok(reply));
            read(&t);
        }
    }
}
