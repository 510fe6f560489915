//! `--goal auto`: the goal that fits the host's role.

use ringwise_intent::role;
use ringwise_model::{Goal, GoalChoice, Snapshot};

use crate::args::{Common, IntentArgs};
use crate::exit::Result;
use crate::out;
use crate::source::Source;

/// The goal that `--goal auto` stands for; the reason is printed on stderr.
pub(super) fn of_role(source: &Source, s: &Snapshot, common: &Common) -> Goal {
    let role = role(source.host.as_ref(), s);
    let goal = role.goal().unwrap_or_default();
    let of = match role.goal() {
        Some(_) => source.recording.host(s.host.name.known().map(String::as_str)) + " ",
        None => String::new(),
    };
    out::note(common.quiet, &format!("ringwise: goal {goal}: {of}{}", role.words()));
    goal
}

/// The goal that an option names; without the option the default one.
pub(super) fn chosen(choice: Option<GoalChoice>, source: &Source, s: &Snapshot, common: &Common) -> Goal {
    match choice {
        Some(GoalChoice::Auto) => of_role(source, s, common),
        Some(GoalChoice::Of(goal)) => goal,
        None => Goal::default(),
    }
}

/// The same arguments with `auto` replaced by a goal.
pub(super) fn settled(a: &IntentArgs, source: &Source, common: &Common) -> Result<IntentArgs> {
    if a.goal != Some(GoalChoice::Auto) {
        return Ok(a.clone());
    }
    let s = source.snapshot(&ringwise_discover::Options::all(), common)?;
    let goal = of_role(source, &s, common);
    Ok(IntentArgs { goal: Some(goal.into()), ..a.clone() })
}
