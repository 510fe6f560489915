//! Settings that a plan skipped, grouped by the command that includes them.

use ringwise_knob::Setting;
use ringwise_knob::partial::named_parts;
use ringwise_model::Fact;
use ringwise_plan::ProposedChange;
use ringwise_text::{Style, hang};

/// A reader takes the command below a change for one that includes this change alone. The page may have two lists: of
/// requested changes and of those that the goal proposes.
const WHOLE: &str = "--allow-disruption includes every change on this page that interrupts traffic, on the interfaces that \
                     a command names, or on all of them if it names none.";

/// One line for the same change on several devices.
struct Line {
    devs: Vec<String>,
    text: String,
}

/// The lines of one command.
struct Group<'a> {
    outage: bool,
    command: &'a str,
    lines: Vec<Line>,
}

/// The settings, below a heading for each reason why they were skipped. `title`: the first word or words of the heading.
/// `all`: the command that includes everything that interrupts traffic.
pub(super) fn text<'a>(
    list: impl Iterator<Item = &'a ProposedChange>,
    title: &str,
    all: Option<&str>,
    style: &Style,
) -> String {
    let mut groups: Vec<Group> = Vec::new();
    for l in list {
        let outage = !l.outage.is_empty();
        let at = groups.iter().position(|g| g.outage == outage && g.command == l.command).unwrap_or_else(|| {
            groups.push(Group { outage, command: &l.command, lines: Vec::new() });
            groups.len() - 1
        });
        let dev = l.setting.address().and_then(|a| a.dev().map(str::to_string)).unwrap_or_else(|| "host".into());
        let duration = if outage { format!(" ({})", l.outage) } else { String::new() };
        let text = format!("{}: {}{duration}", change(&l.from, &l.setting), l.reason);
        let lines = &mut groups[at].lines;
        match lines.iter_mut().find(|o| o.text == text) {
            Some(o) if !o.devs.contains(&dev) => o.devs.push(dev),
            Some(_) => {}
            None => lines.push(Line { devs: vec![dev], text }),
        }
    }
    let mut out = String::new();
    for outage in [false, true] {
        let mine: Vec<&Group> = groups.iter().filter(|g| g.outage == outage).collect();
        if mine.is_empty() {
            continue;
        }
        let why = if outage { "it interrupts traffic" } else { "the decision is yours" };
        out.push_str(&hang("", &format!("{title} because {why}:"), style.width));
        for g in &mine {
            for l in &g.lines {
                out.push_str(&hang(&format!("  {}  ", l.devs.join(" ")), &l.text, style.width));
            }
            out.push_str(&format!("      {}\n", style.recording.reads(g.command)));
        }
        if outage && mine.iter().map(|g| g.lines.len()).sum::<usize>() > 1 {
            out.push_str(&hang("  ", WHOLE, style.width));
        }
        if let Some(all) = all.filter(|all| outage && mine.len() > 1 && mine.iter().all(|g| g.command != *all)) {
            out.push_str(&format!("  all of them\n      {}\n", style.recording.reads(all)));
        }
    }
    out
}

pub(crate) fn change(from: &Fact<Setting>, to: &Setting) -> String {
    let what = match to {
        Setting::Feature { name, .. } => name.clone(),
        _ => to.address().map_or_else(|| "setting".into(), |a| a.family().title().to_string()),
    };
    let now = match from {
        Fact::Known(f) => named_parts(f, to).value_text(),
        Fact::Absent => "-".into(),
        Fact::Unknown(u) => format!("unknown ({})", u.why),
    };
    format!("{what} {now} -> {}", to.value_text())
}
