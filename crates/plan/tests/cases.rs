//! Golden plans: a case is a folder with `host.json`, `intent.json` and the expected `plan.json`. `RINGWISE_BLESS=1`
//! rewrites the expected results.

use std::path::{Path, PathBuf};

use ringwise_model::Intent;
use ringwise_testkit::golden;
use ringwise_testkit::machines::HostSpec;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn run(case: &str) {
    let dir = root().join(case);
    let host: HostSpec = read(&dir.join("host.json"));
    let intent: Intent = read(&dir.join("intent.json"));
    let got = match ringwise_plan::plan(&host.snapshot(), &intent, &[]) {
        Ok(plan) => {
            let value = serde_json::to_value(&plan).expect("plans are JSON");
            let back: ringwise_plan::Plan = serde_json::from_value(value.clone()).expect("and read back");
            assert_eq!(back, plan);
            value
        }
        Err(refusal) => serde_json::json!({"refusal": refusal, "text": refusal.to_string()}),
    };
    golden::compare(&dir.join("plan.json"), &golden::json(&got));
}

macro_rules! cases {
    ($($test:ident = $folder:literal,)*) => {
        $(#[test] fn $test() { run($folder) })*

        #[test]
        fn every_folder_is_a_test() {
            let mut listed = vec![$($folder),*];
            listed.sort_unstable();
            assert_eq!(golden::folders(&root()), listed);
        }
    };
}

cases! {
    six_cpus_six_queues = "six-cpus-six-queues",
    cpu_0_kept_free_five_queues = "cpu-0-kept-free-five-queues",
    cpu_0_kept_free_six_queues = "cpu-0-kept-free-six-queues",
    router_three_ports_alike = "router-three-ports-alike",
    one_queue_per_core_with_hyperthreads = "one-queue-per-core-with-hyperthreads",
    two_nics_on_two_nodes = "two-nics-on-two-nodes",
    two_nics_on_one_node = "two-nics-on-one-node",
    more_queues_than_cpus = "more-queues-than-cpus",
    one_queue_rps_over_its_l3 = "one-queue-rps-over-its-l3",
    rps_removed = "rps-removed",
    one_cpu = "one-cpu",
    article_groups = "article-groups",
    fewer_queues_with_disruption = "fewer-queues-with-disruption",
    used_by_xdp = "used-by-xdp",
    managed_interrupts = "managed-interrupts",
    shared_vectors = "shared-vectors",
    bond_members_alike = "bond-members-alike",
    bond_one_member_refuses = "bond-one-member-refuses",
    bond_last_member = "bond-last-member",
    bond_over_two_nodes = "bond-over-two-nodes",
    control_path_over_a_bond = "control-path-over-a-bond",
    control_path_unknown = "control-path-unknown",
    refused_unknown_device = "refused-unknown-device",
    refused_cpu_beyond = "refused-cpu-beyond",
    refused_nothing_left = "refused-nothing-left",
    refused_too_many_queues = "refused-too-many-queues",
    refused_article_shared_vectors = "refused-article-shared-vectors",
}
