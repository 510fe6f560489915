//! The machine the test runs on, read only.

use std::sync::Arc;

use ringwise_discover::{Options, snapshot};
use ringwise_model::{Fact, NicKind};
use ringwise_sys::{Host, Real};

#[test]
fn this_machine_is_read_without_a_panic() {
    let host: Arc<dyn Host> = Arc::new(Real::new().unwrap());
    let s = match snapshot(&host, &Options::all()) {
        Ok(s) => s,
        Err(e) => return ringwise_testkit::skipped("this_machine_is_read_without_a_panic", &e.to_string()),
    };
    assert!(!s.topology.online.is_empty());
    assert_eq!(s.topology.cpus.len(), s.topology.online.len());
    let lo = s.nic("lo").expect("every network namespace has lo");
    assert_eq!(lo.kind, NicKind::Loopback);
    assert!(lo.vectors.is_empty() && !lo.has_own_queues());
    assert!(matches!(s.host.kernel, Fact::Known(_)), "{:?}", s.host.kernel);
    let json = serde_json::to_string(&s).unwrap();
    assert_eq!(serde_json::from_str::<ringwise_model::Snapshot>(&json).unwrap(), s);
    println!("{}", serde_json::to_string_pretty(&s).unwrap());
}

#[test]
fn an_unknown_device_is_refused_with_the_ones_that_exist() {
    let host: Arc<dyn Host> = Arc::new(Real::new().unwrap());
    let e = snapshot(&host, &Options::only(&["no-such-dev0".to_string()])).unwrap_err().to_string();
    assert!(e.starts_with("there is no interface \"no-such-dev0\""), "{e}");
}
