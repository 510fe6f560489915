//! The lines of `status` about the service that keeps a layout.

use ringwise_daemon::pauses::{Pause, PauseReason};
use ringwise_daemon::{Action, ActionEnding, ServiceState};
use ringwise_text::when;
use ringwise_text::{Style, Tint, plural, visible};

/// The last actions that the page shows; the service keeps more.
const ACTIONS: usize = 3;
/// Longest list of pauses, and of interfaces of an action.
const NAMES: usize = 6;
/// The kernel's names of interfaces are shorter than this. The file may contain any name.
const LONGEST_NAME: usize = 16;
/// Longest text that the service copied from an error.
const LONGEST_TEXT: usize = 240;

/// Labels and texts, in the order of the page.
pub(super) fn lines(s: &ServiceState, style: &Style) -> Vec<(&'static str, String)> {
    let mut out = vec![("service", mode(s, style))];
    out.extend(s.pauses.iter().take(NAMES).map(|p| ("paused", pause(p, style))));
    if s.pauses.len() > NAMES {
        out.push(("paused", format!("{} more", plural(s.pauses.len() - NAMES, "interface"))));
    }
    if let Some(why) = &s.problem {
        out.push(("problem", style.paint(Tint::Red, &cut(why, LONGEST_TEXT))));
    }
    if style.verbose > 0 {
        out.extend(s.deaf.iter().take(NAMES).map(|d| ("unheard", cut(d, LONGEST_TEXT))));
    }
    out.extend(s.actions.iter().rev().take(ACTIONS).map(|a| ("action", action(a, style))));
    out
}

/// `keeps 41 settings since 2026-11-25 10:02 (mode keep, /etc/ringwise/ringwise.toml)`
fn mode(s: &ServiceState, style: &Style) -> String {
    if s.paused {
        let text = "PAUSED: nothing on this host is kept until you run ringwise daemon resume (mode keep)";
        return style.paint(Tint::Yellow, text);
    }
    let file = s.config.as_ref().map(|c| format!(", {}", cut(c, LONGEST_TEXT))).unwrap_or_default();
    let since = when::minute(s.since_unix, style.utc);
    format!("keeps {} since {since} (mode keep{file})", plural(s.keeps, "setting"))
}

fn pause(p: &Pause, style: &Style) -> String {
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
    style.paint(Tint::Yellow, &format!("{dev} until {until}{why}"))
}

/// `2026-11-25 14:41 the driver or the kernel had reset settings: set 12 settings of eth0 (transaction 15)`
fn action(a: &Action, style: &Style) -> String {
    let names: Vec<String> = a.interfaces.iter().take(NAMES).map(|d| cut(d, LONGEST_NAME)).collect();
    let mut devs = names.join(", ");
    if a.interfaces.len() > NAMES {
        devs.push_str(&format!(" and {} more", a.interfaces.len() - NAMES));
    }
    let id = a.transaction.map_or_else(|| "a transaction".into(), |id| format!("transaction {id}"));
    let what = match a.ending {
        ActionEnding::Kept => format!("set {} of {devs} ({id})", plural(a.settings, "setting")),
        ActionEnding::Restored => format!("{id} on {devs} failed and was restored"),
        ActionEnding::Incomplete => format!("{id} on {devs} failed and is NOT fully restored"),
        ActionEnding::Refused => format!("{id} on {devs} was refused, nothing was written"),
    };
    let why = a.why.as_ref().map(|w| format!(": {}", cut(w, LONGEST_TEXT))).unwrap_or_default();
    let text = format!("{} {}: {what}{why}", when::minute(a.unix_time, style.utc), a.cause.text());
    match a.ending {
        ActionEnding::Kept => text,
        ActionEnding::Restored | ActionEnding::Refused => style.paint(Tint::Yellow, &text),
        ActionEnding::Incomplete => style.paint(Tint::Red, &text),
    }
}

/// The text without characters that a terminal acts on, and not longer than `most`.
fn cut(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let begin: String = chars.by_ref().take(most).collect();
    let rest = if chars.next().is_some() { "…" } else { "" };
    format!("{}{rest}", visible(&begin))
}
