//! Each family handles all of its settings: these tests fail for a new setting that its family does not handle.

use std::collections::BTreeSet;

use ringwise_knob::{Address, Family, Setting, project};

use crate::commands::host;

/// One setting of each kind, as stored in a journal.
const ONE_OF_EACH: &[&str] = &[
    r#"{"knob":"irqbalance_restart","dev":"eth0","left":true}"#,
    r#"{"knob":"irqbalance_ban","dev":"eth0","left":"all"}"#,
    r#"{"knob":"feature","dev":"eth0","name":"rx-gro","on":false}"#,
    r#"{"knob":"channels","dev":"eth0","combined":4}"#,
    r#"{"knob":"rings","dev":"eth0","rx":512}"#,
    r#"{"knob":"pause","dev":"eth0","rx":true}"#,
    r#"{"knob":"coalesce","dev":"eth0","params":{"rx-usecs":20}}"#,
    r#"{"knob":"queue_coalesce","dev":"eth0","queue":1,"params":{"rx-usecs":20}}"#,
    r#"{"knob":"rss_hash","dev":"eth0","function":"toeplitz"}"#,
    r#"{"knob":"rss_fields","dev":"eth0","flow":"udp4","fields":"sdfn"}"#,
    r#"{"knob":"rss_table","dev":"eth0","table":[0,1]}"#,
    r#"{"knob":"rss_context","dev":"eth0","context":1,"table":[0,1]}"#,
    r#"{"knob":"ntuple","dev":"eth0","on":true}"#,
    r#"{"knob":"flow_rule","dev":"eth0","location":7}"#,
    r#"{"knob":"irq_cpus","dev":"eth0","of":{"rx":1},"cpus":"2","on":2}"#,
    r#"{"knob":"xps_cpus","dev":"eth0","queue":1,"cpus":"2"}"#,
    r#"{"knob":"xps_rxqs","dev":"eth0","queue":1,"rxqs":[2]}"#,
    r#"{"knob":"rps_cpus","dev":"eth0","queue":1,"cpus":"2"}"#,
    r#"{"knob":"rps_flow_cnt","dev":"eth0","queue":1,"entries":4096}"#,
    r#"{"knob":"rfs_entries","entries":4096}"#,
    r#"{"knob":"napi_device","dev":"eth0","values":{"defer_hard_irqs":null,"gro_flush_timeout_ns":null,"irq_suspend_timeout_ns":null,"threaded":1}}"#,
    r#"{"knob":"napi","dev":"eth0","of":{"rx":1},"values":{"defer_hard_irqs":null,"gro_flush_timeout_ns":null,"irq_suspend_timeout_ns":null,"threaded":1}}"#,
    r#"{"knob":"napi_thread","dev":"eth0","of":{"rx":1},"cpus":"2"}"#,
    r#"{"knob":"sysctl","name":"net.core.netdev_budget","value":"600"}"#,
    r#"{"knob":"cpu_latency","cpu":1,"value":"0"}"#,
];

fn all() -> Vec<Setting> {
    ONE_OF_EACH.iter().map(|json| serde_json::from_str(json).unwrap()).collect()
}

/// Checks the journal's text and the order in which settings are written.
#[test]
fn there_is_one_of_each_kind_in_the_order_of_writing() {
    let kinds: Vec<&str> = all().iter().map(|s| s.kind().unwrap_or("a later one")).collect();
    assert_eq!(kinds, Setting::KINDS);
    for (setting, json) in all().iter().zip(ONE_OF_EACH) {
        assert_eq!(serde_json::to_string(setting).unwrap(), *json);
    }
    let addresses: Vec<Address> = all().iter().filter_map(Setting::address).collect();
    assert!(addresses.is_sorted(), "{addresses:?}");
}

#[test]
fn the_file_of_the_family_handles_each_of_its_settings() {
    let mut labels = BTreeSet::new();
    for setting in all() {
        let address = setting.address().unwrap();
        assert_eq!(Some(address.family()), setting.family());
        assert_eq!(address.dev(), setting.dev());
        assert!(!setting.value_text().is_empty(), "{setting:?}");
        let label = address.to_string();
        assert!(label.len() > 4 && label.starts_with(setting.dev().unwrap_or_default()), "{label}");
        assert!(labels.insert(label.clone()), "two settings are called {label}");
        if let Err(e) = project(&mut host(), &setting) {
            assert_ne!(e.to_string(), "a setting of another family", "{setting:?}");
        }
    }
    let families: BTreeSet<Family> = all().iter().filter_map(Setting::family).collect();
    assert_eq!(families, Family::ALL.iter().copied().collect());
}

/// Only the name of the device changes; settings of the host have no device.
#[test]
fn a_device_that_was_renamed_has_the_same_settings() {
    for setting in all() {
        let renamed = setting.renamed("lan7");
        assert_eq!(renamed.dev(), setting.dev().map(|_| "lan7"));
        assert_eq!(renamed.address(), setting.address().map(|a| a.renamed("lan7")));
        assert_eq!(renamed.renamed("eth0"), setting);
    }
}
