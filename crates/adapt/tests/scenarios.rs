//! What the adapter reaches under described traffic, with 128 entries, 8 queues and 8 CPUs.
use crate::closed_loop::Adaptive;
use ringwise_testkit::closed_loop::{Interface, Traffic, run};

fn interface() -> Interface {
    Interface::even(128, 8, 8)
}

#[test]
fn explore_zipf() {
    for zipf in [0.9, 1.1] {
        for seed in 1..=12 {
            let mut i = interface();
            let mut t = Traffic::zipf(128, 10_000, zipf, 8.0 * 0.55, seed);
            let base = t.base().to_vec();
            let before = i.max_to_mean(&base);
            let mut p = Adaptive::default();
            let r = run(&mut i, &mut t, &mut p, 60, seed);
            let at60 = i.max_to_mean(&base);
            let loads: Vec<u64> = base.iter().map(|b| (b * 1e9) as u64).collect();
            let best =
                ringwise_flow::balance::balance(&Interface::even(128, 8, 8).table, &loads, &[], 8, |_| true, 1.0);
            let mut r2 = r.clone();
            if r2.moves < 1000 {
                r2 = run(&mut i, &mut t, &mut p, 600, seed + 100);
            }
            println!(
                "zipf {zipf} seed {seed}: {before:.2} -> {at60:.2} (60 s, {} moved) -> {:.2} ({} more) best {:.2} floor {:.2} restored {} named {:?} first {:?}",
                r.moves,
                i.max_to_mean(&base),
                r2.moves,
                best.after,
                best.floor,
                p.restored,
                p.named.iter().map(|e| (e.entry, e.points as u32)).collect::<Vec<_>>(),
                r.first_move
            );
        }
    }
}

#[test]
fn explore_log() {
    let seed: u64 = std::env::var("SEED").map_or(2, |s| s.parse().unwrap());
    let mut i = interface();
    let mut t = Traffic::zipf(128, 10_000, 1.1, 8.0 * 0.55, seed);
    let base = t.base().to_vec();
    let mut p = Adaptive::default();
    run(&mut i, &mut t, &mut p, 60, seed);
    run(&mut i, &mut t, &mut p, 300, seed + 100);
    for (s, a) in &p.log {
        println!("{s} {a:?}");
    }
    println!("{:?}", i.offered(&base));
    for c in 0..8 {
        let mut v: Vec<(u64, usize)> =
            (0..128).filter(|e| i.table[*e] == c).map(|e| ((base[e] * 10000.0) as u64, e)).collect();
        v.sort();
        v.reverse();
        println!("{c} {v:?}");
    }
}

#[test]
fn explore_even() {
    for seed in 1..=3 {
        let mut i = interface();
        let mut t = Traffic::zipf(128, 10_000, 0.0, 8.0 * 0.5, seed).with_day(0.5);
        let mut p = Adaptive::default();
        let r = run(&mut i, &mut t, &mut p, 86_400, seed);
        println!("even {seed}: {} moves, {} returns restored {}", r.moves, r.returns, p.restored);
    }
}
#[test]
fn explore_on_off() {
    for seed in 1..=12 {
        for share in [0.3, 0.45] {
            let go = |p: &mut dyn ringwise_testkit::closed_loop::Policy| {
                let mut i = interface();
                let mut t = Traffic::zipf(128, 10_000, 0.9, 8.0 * 0.4, seed).with_on_off(2, share);
                run(&mut i, &mut t, p, 4 * 3600, seed)
            };
            let mut p = Adaptive::default();
            let r = go(&mut p);
            let st = go(&mut ringwise_testkit::closed_loop::StandStill);
            println!(
                "on/off {share} {seed}: {} moves, most {} returns {} most {}, restored {} off {} named {} lost {:.3} hot {:.1} still lost {:.3} hot {:.1}",
                r.moves,
                r.most_moves_in_an_hour,
                r.returns,
                r.most_returns_in_an_hour,
                p.restored,
                p.off_seconds,
                p.named.len(),
                r.lost_percent,
                r.hot_seconds_percent,
                st.lost_percent,
                st.hot_seconds_percent
            );
        }
    }
}
#[test]
fn explore_crowd() {
    for seed in 1..=12 {
        let go = |p: &mut dyn ringwise_testkit::closed_loop::Policy| {
            let mut i = interface();
            let mut t = Traffic::zipf(128, 10_000, 0.9, 8.0 * 0.15, seed).with_surge(100, 5.0);
            run(&mut i, &mut t, p, 700, seed)
        };
        let mut p = Adaptive::default();
        let r = go(&mut p);
        let st = go(&mut ringwise_testkit::closed_loop::StandStill);
        println!(
            "crowd {seed}: {} moves, first {:?} returns {} restored {} lost {:.2} still lost {:.2} = {:.0} %  end {:.2} from {:.2}",
            r.moves,
            r.first_move,
            r.returns,
            p.restored,
            r.lost,
            st.lost,
            100.0 * r.lost / st.lost,
            r.max_to_mean.last().unwrap(),
            st.max_to_mean.last().unwrap()
        );
    }
}
