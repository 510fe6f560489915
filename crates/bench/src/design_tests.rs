use super::*;
use proptest::prelude::*;

fn block(slots: &[Slot], phase: Phase, block: u32) -> Vec<Slot> {
    slots.iter().copied().filter(|s| s.phase == phase && s.block == block).collect()
}

/// The states of a block in their order.
fn turns(slots: &[Slot]) -> Vec<usize> {
    let mut t: Vec<usize> = slots.iter().map(|s| s.state).collect();
    t.dedup();
    t
}

#[test]
fn two_states_go_ab_ba() {
    let slots = order(2, 3, 40, 0, 5);
    let t: Vec<Vec<usize>> = (0..40).map(|b| turns(&block(&slots, Phase::Measure, b))).collect();
    assert!(
        t.chunks(2).all(|pair| pair[0].len() == 2 && pair[0][0] == pair[1][1] && pair[0][1] == pair[1][0]),
        "{t:?}"
    );
    let first = t.chunks(2).filter(|pair| pair[0][0] == 0).count();
    assert!((3..=17).contains(&first), "not random: {first} of 20 pairs of blocks begin with state 0");
}

#[test]
fn over_a_cycle_every_state_follows_every_other_equally_often() {
    for states in 2..=7 {
        let blocks = if states % 2 == 0 { states } else { 2 * states };
        let slots = order(states, 1, blocks as u32, 0, 11);
        let mut after = vec![0; states * states];
        for b in 0..blocks as u32 {
            turns(&block(&slots, Phase::Measure, b)).windows(2).for_each(|w| after[w[0] * states + w[1]] += 1);
        }
        let each = if states % 2 == 0 { 1 } else { 2 };
        for (i, n) in after.iter().enumerate() {
            assert_eq!(*n, if i / states == i % states { 0 } else { each }, "{states}: {after:?}");
        }
    }
}

#[test]
fn calibration_comes_first_with_the_first_state_twice() {
    let slots = order(3, 4, 2, 2, 9);
    assert!(slots[..16].iter().all(|s| s.phase == Phase::Calibration && s.state == 0));
    assert!(slots[16..].iter().all(|s| s.phase == Phase::Measure && !s.second));
    for b in 0..2 {
        let c = block(&slots, Phase::Calibration, b);
        assert!(c[..4].iter().all(|s| !s.second) && c[4..].iter().all(|s| s.second));
        let points = |s: &[Slot]| s.iter().map(|s| s.point).collect::<Vec<_>>();
        assert_eq!(points(&c[..4]), points(&c[4..]));
    }
}

#[test]
fn nothing_to_measure_is_no_trial() {
    assert!(order(0, 3, 3, 3, 1).is_empty() && order(2, 0, 3, 3, 1).is_empty() && order(2, 3, 0, 0, 1).is_empty());
}

proptest! {
    #[test]
    fn blocks_are_complete_balanced_and_the_same_for_a_seed(
        states in 1usize..6, points in 1usize..6, blocks in 0u32..14, calibration in 0u32..4, seed: u64,
    ) {
        let slots = order(states, points, blocks, calibration, seed);
        prop_assert_eq!(&slots, &order(states, points, blocks, calibration, seed));
        prop_assert_eq!(slots.len(), states * points * blocks as usize + 2 * points * calibration as usize);
        let mut places = vec![0u32; states * states];
        for b in 0..blocks {
            let block = block(&slots, Phase::Measure, b);
            let mut all: Vec<_> = block.iter().map(|s| (s.state, s.point)).collect();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), states * points);
            prop_assert!(block.iter().enumerate().all(|(i, s)| s.order == i as u32));
            // As few switches as possible.
            let turns = turns(&block);
            prop_assert_eq!(turns.len(), states);
            turns.iter().enumerate().for_each(|(k, s)| places[k * states + s] += 1);
        }
        for place in places.chunks(states) {
            let (least, most) = (place.iter().min().unwrap(), place.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{places:?}");
        }
    }
}
