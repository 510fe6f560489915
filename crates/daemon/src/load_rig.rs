//! What the tests of moves because of the load share.

use std::collections::BTreeSet;
use std::fmt::Debug;

use ringwise_apply::Journals;
use ringwise_observe::{Layout, Rates};

use crate::follow::{News, Rules};
use crate::service::Service;
use crate::service_tests::Rig;

/// Settings in effect that were moved because of the load.
pub(crate) fn balanced(rig: &Rig) -> usize {
    Journals::read(&rig.setup.store).unwrap().balanced(&rig.now()).len()
}

/// A second with these loads.
pub(crate) fn second(rig: &Rig, service: &mut Service, layout: &Layout, rates: &Rates) {
    service.check_links();
    let mut follow = service.follow.take().unwrap_or_default();
    let mut news = News::default();
    let resting: BTreeSet<String> = service.pauses.names();
    let rules = Rules {
        left_alone: &resting,
        acts: &|d| service.acts_on(d),
        no_table: &|d| service.link_losses.forbids_table(d),
        permitted: &service.permitted,
        machine: &service.machine,
    };
    follow.pass_on(&rig.host, layout, rates, rules, &mut news);
    service.follow = Some(follow);
    service.act_on_news(news);
}

/// A service moves `value`, settings of the interface `dev`, and hands over to the next one, which is killed.
pub(crate) fn hands_over<T: Clone + Debug + PartialEq>(
    rig: &Rig,
    dev: &str,
    value: impl Fn(&Rig) -> T,
    move_it: impl FnOnce(&mut Service),
) {
    let first = value(rig);
    let mut moved = first.clone();
    rig.serve(|service| {
        move_it(service);
        moved = value(rig);
        assert_ne!(moved, first);
        let state = service.left().unwrap();
        ringwise_apply::hand_over(&rig.setup.store, rig.host.as_ref(), state).unwrap();
    });
    rig.serve(|service| {
        assert_eq!(value(rig), moved);
        let all = service.moved();
        assert!(all.keys().eq([dev]) && !all[dev].is_empty(), "it knows what its predecessor moved: {all:?}");
    });
    // The next one finds nothing that was left to it: its predecessor was killed.
    rig.serve(|_| {
        assert_eq!((value(rig), balanced(rig)), (first.clone(), 0));
    });
    assert!(rig.holds());
}
