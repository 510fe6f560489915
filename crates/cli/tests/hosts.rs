//! The pages for every host in `fixtures/hosts`: `show.txt` (the list, then each interface) and `plan-GOAL.txt`, at
//! 80 columns.

use std::time::Duration;

use ringwise_discover::{Options, snapshot};
use ringwise_model::{Goal, Intent, Snapshot};
use ringwise_render::{plan as plan_page, show, table};
use ringwise_testkit::{golden, hosts};
use ringwise_text as text;
use ringwise_text::Style;

/// A goal that changes little, and the one that changes the most.
const GOALS: [Goal; 2] = [Goal::Balanced, Goal::Forward];

fn discover(name: &str) -> Snapshot {
    // No device may be reported as slow, even if this machine is busy.
    let options = Options { deadline: Duration::from_secs(60), ..Options::all() };
    snapshot(&hosts::open(name), &options).expect("discovery")
}

fn golden(name: &str) {
    let s = discover(name);
    let style = Style::plain(Some(80));
    let mut page = text::host_line(&s, style.width);
    page.push('\n');
    page.push_str(&table::interfaces(&s, &Default::default(), true, &style));
    for nic in s.nics.iter().filter(|n| n.has_own_queues()) {
        page.push_str(&format!("\n$ ringwise show {}\n", nic.name()));
        page.push_str(&show::devices(&s, &[nic], None, &style));
    }
    golden::compare(&hosts::dir().join(name).join("show.txt"), &page);
    assert_narrow(name, &page, 80);
    for goal in Goal::ALL {
        let intent = Intent { goal, allow_disruption: goal == Goal::Forward, ..Intent::default() };
        let page = match ringwise_plan::plan(&s, &intent, &[]) {
            Ok(plan) => plan_page::text(
                &plan,
                Some(&s),
                &plan_page::PlanPageOptions {
                    again: format!("--goal {goal}"),
                    recorded: true,
                    ..plan_page::PlanPageOptions::default()
                },
                &style,
            ),
            Err(refusal) => format!("refused: {refusal}\n"),
        };
        if GOALS.contains(&goal) {
            golden::compare(&hosts::dir().join(name).join(format!("plan-{goal}.txt")), &page);
        }
        assert_narrow(name, &page, 80);
    }
}

/// No line of these pages is wider than the terminal, except those to be copied: a broken command does not work.
fn assert_narrow(name: &str, page: &str, width: usize) {
    let copied = |l: &str| ["ringwise ", "AllowedCPUs=", "CPUAffinity=", "echo "].iter().any(|part| l.contains(part));
    let wide: Vec<&str> = page.lines().filter(|l| l.chars().count() > width && !copied(l)).collect();
    assert!(wide.is_empty(), "{name}: wider than {width} columns:\n{}", wide.join("\n"));
}

ringwise_testkit::each_host! { golden }

/// Every host in `fixtures/hosts`, by name.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Snapshot)> {
    LISTED.iter().map(|name| (*name, discover(name)))
}
