//! The lines of `status` about the service that keeps a layout.

use ringwise_daemon::pauses::{InterfacePause, PauseReason};
use ringwise_daemon::{ActionEnding, ServiceAction, ServiceState};
use ringwise_text::when;
use ringwise_text::{Style, Tint, hang, pad, plural, visible};

/// The last actions that the page shows; the service keeps more.
const ACTIONS: usize = 3;
/// Longest list of pauses, and of interfaces of an action.
const NAMES: usize = 6;
/// The kernel's names of interfaces are shorter than this. The file may contain any name.
const LONGEST_NAME: usize = 16;
/// Longest text that the service copied from an error.
const LONGEST_TEXT: usize = 240;

/// Width of a label.
const LABEL: usize = 12;

/// The lines of the page.
pub(super) fn lines(s: &ServiceState, style: &Style) -> String {
    let tint = if s.paused { Some(Tint::Yellow) } else { None };
    let mut out = line("service", tint, &mode(s, style), style);
    for p in s.pauses.iter().take(NAMES) {
        out.push_str(&line("paused", Some(Tint::Yellow), &pause(p, style), style));
    }
    if s.pauses.len() > NAMES {
        let text = format!("{} more", plural(s.pauses.len() - NAMES, "interface"));
        out.push_str(&line("paused", None, &text, style));
    }
    if let Some(why) = &s.problem {
        out.push_str(&line("problem", Some(Tint::Red), &cut(why, LONGEST_TEXT), style));
    }
    for d in s.deaf.iter().take(if style.verbose > 0 { NAMES } else { 0 }) {
        out.push_str(&line("unheard", None, &cut(d, LONGEST_TEXT), style));
    }
    for l in s.loads.iter().take(NAMES) {
        let text = format!("{}: {}", cut(&l.interface, LONGEST_NAME), cut(&l.finding.to_string(), LONGEST_TEXT));
        out.push_str(&line("load", Some(Tint::Yellow), &text, style));
    }
    for a in s.actions.iter().rev().take(ACTIONS) {
        let tint = match a.ending {
            ActionEnding::Kept => None,
            ActionEnding::Restored | ActionEnding::Refused => Some(Tint::Yellow),
            ActionEnding::Incomplete => Some(Tint::Red),
        };
        out.push_str(&line("action", tint, &action(a, style), style));
    }
    out
}

/// Wrapped before it is coloured, because escape sequences have no width.
fn line(label: &str, tint: Option<Tint>, text: &str, style: &Style) -> String {
    let plain = hang(&pad(label, LABEL), text, style.width);
    match (tint, plain.split_at_checked(LABEL)) {
        (Some(tint), Some((label, rest))) => format!("{label}{}\n", style.paint(tint, rest.trim_end())),
        _ => plain,
    }
}

/// `keeps 41 settings since 2026-11-25 10:02 (mode keep, /etc/ringwise/ringwise.toml)`
fn mode(s: &ServiceState, style: &Style) -> String {
    if s.paused {
        return "PAUSED: nothing on this host is kept until you run ringwise daemon resume (mode keep)".into();
    }
    let file = s.config.as_ref().map(|c| format!(", {}", cut(c, LONGEST_TEXT))).unwrap_or_default();
    let since = when::minute(s.since_unix, style.utc);
    format!("keeps {} since {since} (mode keep{file})", plural(s.keeps, "setting"))
}

fn pause(p: &InterfacePause, style: &Style) -> String {
    let dev = cut(&p.interface, LONGEST_NAME);
    let until = match p.until_unix {
        Some(t) => when::clock(t, style.utc),
        None => format!("you run ringwise daemon resume {dev}"),
    };
    let why = match &p.why {
        PauseReason::Command => String::new(),
        PauseReason::Competing { program } => {
            format!(": {} moved its settings back twice", cut(program, LONGEST_TEXT))
        }
        PauseReason::Failed { why } => format!(": a transaction failed: {}", cut(why, LONGEST_TEXT)),
    };
    format!("{dev} until {until}{why}")
}

/// `2026-11-25 14:41 the driver or the kernel had reset settings: set 12 settings of eth0 (transaction 15)`
fn action(a: &ServiceAction, style: &Style) -> String {
    let names: Vec<String> = a.interfaces.iter().take(NAMES).map(|d| cut(d, LONGEST_NAME)).collect();
    let mut devs = names.join(", ");
    if a.interfaces.len() > NAMES {
        devs.push_str(&format!(" and {} more", a.interfaces.len() - NAMES));
    }
    let id = a.transaction.map_or_else(|| "a transaction".into(), |id| format!("transaction {id}"));
    let what = match a.ending {
        ActionEnding::Kept if a.settings == 0 => format!("recorded the present settings of {devs} ({id})"),
        ActionEnding::Kept => format!("set {} of {devs} ({id})", plural(a.settings, "setting")),
        ActionEnding::Restored => format!("{id} on {devs} failed and was restored"),
        ActionEnding::Incomplete => format!("{id} on {devs} failed and is NOT fully restored"),
        ActionEnding::Refused => format!("{id} on {devs} was refused, nothing was written"),
    };
    let why = a.why.as_ref().map(|w| format!(": {}", cut(w, LONGEST_TEXT))).unwrap_or_default();
    format!("{} {}: {what}{why}", when::minute(a.unix_time, style.utc), a.cause.text())
}

/// The text without characters that a terminal acts on, and not longer than `most`.
fn cut(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let begin: String = chars.by_ref().take(most).collect();
    let rest = if chars.next().is_some() { "..." } else { "" };
    format!("{}{rest}", visible(&begin))
}
