//! `ringwise help`: topics with the present values of this host, the list of topics, and the rules of `check`.

use std::borrow::Cow;

use ringwise_check::{Rule, rules};
use ringwise_discover::{Options, Parts};
use ringwise_model::Snapshot;
use ringwise_model::order::Order;
use ringwise_render::knob_values::KnobValues;
use ringwise_text::{RecordingName, Style, Tint};
use ringwise_text::{hang, pad};

use crate::args::usage_error::command_for;
use crate::args::{Common, GROUPS, HelpArgs, command};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source;
use ringwise_render::topics::{self, Topic};

/// The most columns of a page, on wider terminals as well.
const WIDTH: usize = 80;
/// The columns of a label before its text.
const LABEL: usize = 9;
/// Where the documents are that topics name.
const DOCUMENTS: &str = "in the source; of a package: /usr/share/doc/ringwise/docs";
/// The search for competing programs may use this fraction of the time that a device has.
const SEARCH_SHARE: u32 = 100;

pub(super) fn run(a: &HelpArgs, common: &Common) -> Result<Status> {
    if common.json {
        return Err(Fail::usage("help has no JSON output").next("ringwise help --topics"));
    }
    let style = crate::style::detect(common);
    let style = Style { width: Some(style.text_width().min(WIDTH)), ..style };
    let words: Vec<String> = a.topic.iter().map(|w| w.to_lowercase()).collect();
    let name = words.join(" ");
    if a.topics {
        out::answer(&list(&style))?;
    } else if words.is_empty() {
        print(&["--help".to_string()]);
        out::answer("Topics: ringwise help --topics\n")?;
    } else if is_command(&words) {
        print(&[words, vec!["--help".into()]].concat());
    } else if name == "topics" {
        out::answer(&list(&style))?;
    } else if name == "rules" {
        out::answer(&rule_list(&style))?;
    } else if let Some(page) = ringwise_check::explain(&name, style.text_width()) {
        out::answer(&page)?;
    } else if let Some(topic) = topics::find(&name) {
        out::answer(&page(topic, a, common, &style)?)?;
    } else if let Some(command) = command_for(&name).filter(|words| !words.is_empty() && is_command(words)) {
        print(&[command, vec!["--help".into()]].concat());
    } else {
        let asked = a.topic.join(" ");
        let text = match nearest(&name).as_slice() {
            [] => format!("there is no help topic \"{asked}\""),
            [one] => format!("there is no help topic \"{asked}\"; did you mean {one}?"),
            several => format!("there is no help topic \"{asked}\"; the nearest are {}", several.join(", ")),
        };
        return Err(Fail::usage(text).next("ringwise help --topics"));
    }
    Ok(Status::Ok)
}

/// Prints the help of a command as `COMMAND --help` does.
fn print(words: &[String]) {
    let argv = std::iter::once("ringwise").chain(words.iter().map(String::as_str));
    if let Err(help) = command().try_get_matches_from(argv) {
        // A reader that has closed the pipe is not an error.
        let _ = help.print();
    }
}

/// Whether the words name a command, or a command of a command (`bench rr`).
fn is_command(words: &[String]) -> bool {
    let root = command();
    let mut at = &root;
    for word in words {
        match at.find_subcommand(word).filter(|c| !c.is_hide_set()) {
            Some(c) => at = c,
            None => return false,
        }
    }
    true
}

/// The page of a topic. Marks are in ASCII if the style requests it.
fn page(topic: &Topic, a: &HelpArgs, common: &Common, style: &Style) -> Result<String> {
    let name = topic.names[0];
    let title = format!("{name}  {}", topic.title);
    let mut out = format!("{}\n\n{}\n", style.paint(Tint::Bold, &title), hang("", topic.body, style.width));
    for part in topic.parts {
        let (label, text) = part.split_once('|').unwrap_or(("", part));
        out += &hang(&pad(label, LABEL), text, style.width);
    }
    if style.ascii {
        out = out.replace('×', "X").replace('·', ".");
    }
    if let Some(knob) = topic.knob {
        out += &values(knob, a, common, style)?;
    }
    Ok(out)
}

/// The present values. A recording that cannot be read is an error; on this host the page shows the reason.
fn values(knob: KnobValues, a: &HelpArgs, common: &Common, style: &Style) -> Result<String> {
    let recorded = a.from.from.is_some();
    let title = if recorded { "In this recording" } else { "On this host" };
    let text = match snapshot(knob, a, common) {
        Ok(s) => knob.text(&s, &style.clone().about(&RecordingName::of(a.from.from.as_deref()))),
        Err(e) if recorded => return Err(e),
        Err(e) => hang("  ", &format!("not read: {}", e.message), style.width),
    };
    Ok(format!("\n{}\n{text}", style.paint(Tint::Bold, title)))
}

fn snapshot(knob: KnobValues, a: &HelpArgs, common: &Common) -> Result<Snapshot> {
    let source = source::open(&a.from)?;
    let all = Options::all();
    let options = Options {
        parts: parts(knob),
        skip_rivals: knob != KnobValues::Irqbalance,
        rivals_within: Some(all.deadline / SEARCH_SHARE),
        skip_control: true,
        ..all
    };
    // The page shows why a value is unknown, so notes about it are not needed.
    source.snapshot(&options, &Common { quiet: true, ..common.clone() })
}

/// The parts of the host that the values need.
fn parts(knob: KnobValues) -> Parts {
    let none = Parts::LEAST;
    match knob {
        KnobValues::Features | KnobValues::Feature(_) => Parts { features: true, ..none },
        KnobValues::Rings => Parts { rings: true, ..none },
        KnobValues::Pause => Parts { pause: true, ..none },
        KnobValues::Moderation => Parts { coalesce: true, queue_coalesce: true, ..none },
        KnobValues::Rss => Parts { rss: true, ..none },
        KnobValues::FlowRules => Parts { rules: true, features: true, ..none },
        KnobValues::Interrupts => Parts { asked: true, ..none },
        KnobValues::Xps | KnobValues::Rps | KnobValues::Rfs | KnobValues::ByteQueueLimits => {
            Parts { steering: true, ..none }
        }
        KnobValues::Napi => Parts { napi: true, ..none },
        KnobValues::NetworkCore | KnobValues::WakeUp => Parts { host: true, ..none },
        KnobValues::Irqbalance
        | KnobValues::Channels
        | KnobValues::Cpus
        | KnobValues::RemoteQueues
        | KnobValues::QueuesPerCpu => none,
    }
}

/// All topics by kind, one line each.
fn list(style: &Style) -> String {
    let line = |name: &str, title: &str| hang(&format!("  {} ", pad(name, 16)), title, style.width);
    let mut out = "Explain one: ringwise help TOPIC\n".to_string();
    let heading = |out: &mut String, text: &str| *out += &format!("\n{}\n", style.paint(Tint::Bold, text));
    heading(&mut out, "COMMANDS");
    let root = command();
    for name in GROUPS.into_iter().flat_map(|(_, names)| names) {
        let about = root.find_subcommand(name).and_then(|c| c.get_about()).map(ToString::to_string);
        out += &line(name, &about.unwrap_or_default());
    }
    for (kind, topics) in topics::KINDS {
        heading(&mut out, kind);
        for t in topics {
            out += &line(t.names[0], t.title);
        }
    }
    heading(&mut out, "RULES OF CHECK");
    out += &line("rules", &format!("all {} rules, with severity and title", rules().count()));
    out += &line("A03", "the page of a rule, by its id");
    heading(&mut out, "DOCUMENTS");
    out += &line("docs/FILE.md", DOCUMENTS);
    out
}

/// All rules of `check`, in the order of their ids.
fn rule_list(style: &Style) -> String {
    let mut all: Vec<&Rule> = rules().collect();
    all.order_by_key(|r| r.id);
    let mut out = format!("{} rules of ringwise check. Explain one: ringwise help A03\n\n", all.len());
    for r in all {
        out += &hang(&format!("{} {} ", pad(r.id, 6), pad(r.severity.name(), 8)), r.title, style.width);
    }
    out
}

/// Names that are less alike (Jaro-Winkler, 1 is the same) are no help.
const ALIKE: f64 = 0.8;

/// The three topics, commands or rules whose names are most similar.
fn nearest(name: &str) -> Vec<String> {
    let asked = topics::normal(name);
    let commands = GROUPS.into_iter().flat_map(|(_, names)| names).map(|n| (Cow::from(*n), *n));
    let all = topics::all().flat_map(|t| t.names.iter().map(|n| (Cow::from(topics::normal(n)), t.names[0])));
    let ids = rules().map(|r| (Cow::from(r.id.to_lowercase()), r.id));
    let mut found: Vec<(f64, &str)> =
        commands.chain(all).chain(ids).map(|(n, shown)| (strsim::jaro_winkler(&asked, &n), shown)).collect();
    found.order_by(|a, b| b.0.total_cmp(&a.0));
    // A rule whose id differs in punctuation only.
    let mut out: Vec<String> = ringwise_check::nearest(name).map(str::to_string).into_iter().collect();
    for (_, shown) in found.into_iter().take_while(|(score, _)| *score >= ALIKE) {
        if out.len() < 3 && !out.iter().any(|o| o == shown) {
            out.push(shown.to_string());
        }
    }
    out
}
