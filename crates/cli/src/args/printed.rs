//! Tests that a printed command is read as the same flags.

use clap::FromArgMatches;
use proptest::prelude::*;
use ringwise_model::{FarNode, Goal, GoalChoice, IntentFlags, Smt, shell};

use super::{Cli, Cmd};

/// Words that a shell would change, and plain ones. None begins like an option.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9]{0,8}",
        "[a-z][ -~]{0,12}",
        "[/a-z][a-z '\"$`\\\\!*?;&|<>(){}#~\t]{0,12}",
        "[a-zäß€][a-zäß€ \n]{0,6}",
    ]
}

fn flags() -> impl Strategy<Value = IntentFlags> {
    let goal = prop_oneof![
        Just(None),
        Just(Some(GoalChoice::Auto)),
        (0..Goal::ALL.len()).prop_map(|at| Some(GoalChoice::Of(Goal::ALL[at]))),
    ];
    let cpus = || proptest::option::of(prop_oneof![Just("0-3,8"), Just("5"), Just("0-1")]);
    let number = || proptest::option::of(1u32..100_000);
    let smt = proptest::option::of(prop_oneof![Just(Smt::All), Just(Smt::OnePerCore)]);
    let far = proptest::option::of(prop_oneof![Just(FarNode::Never), Just(FarNode::Last), Just(FarNode::Ok)]);
    let texts = (
        proptest::collection::vec(word(), 0..3),
        proptest::option::of(word()),
        proptest::collection::vec(word(), 0..3),
    );
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let sample_ms = proptest::option::of(1000u64..86_400_000);
    (texts, goal, (cpus(), cpus(), cpus()), (number(), number(), sample_ms), (smt, far), switches).prop_map(
        |((devs, config, set), goal, (a, b, c), (queues, latency_queues, sample_ms), (smt, far_node), switches)| {
            let cpus = |c: Option<&str>| c.map(|c| c.parse().unwrap());
            IntentFlags {
                devs,
                goal,
                config,
                set,
                // clap accepts --override-config only together with --goal.
                override_config: switches.0 && goal.is_some(),
                cpus: cpus(a),
                reserve: cpus(b),
                exclude_cpus: cpus(c),
                queues,
                smt,
                far_node,
                allow_disruption: switches.1,
                pair_as_article: switches.2,
                latency_queues,
                strict: switches.3,
                sample_ms,
            }
        },
    )
}

fn read(line: &str) -> IntentFlags {
    let words = shell::split(line).unwrap();
    let matches = super::command().try_get_matches_from(words).unwrap();
    match Cli::from_arg_matches(&matches).unwrap().command {
        Some(Cmd::Apply(a)) => a.intent.flags(&a.devs),
        _ => panic!("not an apply: {line}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn a_printed_command_is_read_as_the_same_flags(f in flags()) {
        let words = ["ringwise".to_string(), "apply".to_string()].into_iter().chain(f.words());
        prop_assert_eq!(read(&shell::join(words)), f);
    }

    /// A transaction stores the options as JSON.
    #[test]
    fn flags_are_the_same_from_their_json(f in flags()) {
        let text = serde_json::to_string(&f).unwrap();
        prop_assert_eq!(serde_json::from_str::<IntentFlags>(&text).unwrap(), f);
    }
}
