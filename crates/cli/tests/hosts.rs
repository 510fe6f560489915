//! What people see of every host in `fixtures/hosts`: `show.txt` (the list, then each interface) and
//! `plan-GOAL.txt`, at 80 columns.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringwise_discover::{Options, snapshot};
use ringwise_model::{Goal, Intent, Snapshot};
use ringwise_render::{plan as plan_page, show, table};
use ringwise_sys::{Captured, Host};
use ringwise_testkit::golden;
use ringwise_text as text;
use ringwise_text::Style;

/// One that changes little, one that changes the most.
const GOALS: [Goal; 2] = [Goal::Balanced, Goal::Forward];

fn hosts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts")
}

fn discover(name: &str) -> Snapshot {
    let dir = hosts().join(name);
    let file = ["capture.tar.gz", "tree.tar.gz"].map(|f| dir.join(f)).into_iter().find(|f| f.is_file());
    let host: Arc<dyn Host> = Arc::new(Captured::open(&file.expect("an archive")).expect("archive opens"));
    // A busy machine must not turn a device into a late one.
    snapshot(&host, &Options { deadline: Duration::from_secs(60), ..Options::all() }).expect("discovery")
}

fn golden(name: &str) {
    let s = discover(name);
    let style = Style::plain(Some(80));
    let mut page = text::host_line(&s, style.width);
    page.push('\n');
    page.push_str(&table::interfaces(&s, &Default::default(), true, &style));
    for nic in s.nics.iter().filter(|n| n.has_own_queues()) {
        page.push_str(&format!("\n$ ringwise show {}\n", nic.name()));
        page.push_str(&show::devices(&s, &[nic], &style));
    }
    golden::compare(&hosts().join(name).join("show.txt"), &page);
    for goal in GOALS {
        let intent = Intent { goal, allow_disruption: goal == Goal::Forward, ..Intent::default() };
        let page = match ringwise_plan::plan(&s, &intent, &[]) {
            Ok(plan) => plan_page::text(
                &plan,
                Some(&s),
                &plan_page::Page { again: format!("--goal {goal}"), recorded: true, ..plan_page::Page::default() },
                &style,
            ),
            Err(refusal) => format!("refused: {refusal}\n"),
        };
        golden::compare(&hosts().join(name).join(format!("plan-{goal}.txt")), &page);
    }
}

macro_rules! hosts {
    ($($test:ident: $folder:literal,)*) => {
        const LISTED: &[&str] = &[$($folder),*];
        $(#[test] fn $test() { golden($folder); })*
    };
}

hosts! {
    arm64_hns3: "arm64-hns3",
    article48: "article48",
    ena_guest: "ena-guest",
    epyc_nps1: "epyc-nps1",
    epyc_nps4: "epyc-nps4",
    gve_guest: "gve-guest",
    interleaved: "interleaved",
    lab_big64_6_12: "lab-big64-6.12",
    lab_interleaved_6_12: "lab-interleaved-6.12",
    lab_isolated_6_12: "lab-isolated-6.12",
    lab_router16_5_10: "lab-router16-5.10",
    lab_router16_6_1: "lab-router16-6.1",
    lab_router16_6_12: "lab-router16-6.12",
    lab_router16_6_18: "lab-router16-6.18",
    lab_router16_newest: "lab-router16-newest",
    lab_router3_6_12: "lab-router3-6.12",
    lab_small2_6_12: "lab-small2-6.12",
    mlx5: "mlx5",
    netvsc: "netvsc",
    packed_by_others: "packed-by-others",
    virtio_iavf: "virtio-iavf",
}

#[test]
fn every_folder_has_a_test() {
    assert_eq!(golden::folders(&hosts()), LISTED, "folders of fixtures/hosts and lines of hosts!");
}

/// Every host in `fixtures/hosts`, by name.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Snapshot)> {
    LISTED.iter().map(|name| (*name, discover(name)))
}
