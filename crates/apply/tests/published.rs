//! What every user may read: no reasons, no command lines, no output of health commands.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use ringwise_apply::{Policy, Request, undo_now};
use ringwise_testkit::sim::{Sim, build};

use crate::common::guards::Here;
use crate::common::*;
use std::sync::Arc;

#[test]
fn no_secret_is_published_and_no_journal_is_readable() {
    let (sim, dir, here) =
        (Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done())), Dir::new(), Here::default());
    let now = look(&sim);
    let request = Request {
        reason: Some("CHG-1 with key-one".into()),
        argv: ["ringwise", "apply", "--health", "curl -H token-two"].map(String::from).into(),
        who: "root".into(),
        ..request(&now, &[irq("eth0", 1, "2")])
    };
    let policy = Policy { trial: Some(Duration::from_secs(60)), ..here.policy() };
    ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy, &mut |_| {}).unwrap();
    assert!(undo_now(&dir.store(), 1, "health command", "it said word-three", 0).unwrap());
    here.acts(&sim, &dir.store()).unwrap();
    let path = dir.journal(1);
    let (journal, state) = (std::fs::read_to_string(&path).unwrap(), path.parent().unwrap().to_path_buf());
    let public = std::fs::read_to_string(state.join("status.json")).unwrap();
    for secret in ["key-one", "token-two", "word-three"] {
        assert!(journal.contains(secret), "{secret}");
        assert!(!public.contains(secret), "{secret} in {public}");
    }
    // The useful facts are there: that it was restored, by whom, and which devices it concerned.
    assert!(public.contains("health command") && public.contains("\"transaction\":1") && public.contains("eth0"));
    for name in dir.files() {
        let mode = std::fs::metadata(state.join(&name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if name == "status.json" { 0o644 } else { 0o600 }, "{name}");
    }
}
