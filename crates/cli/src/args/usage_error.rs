//! Errors of the command line, in the form of all errors of ringwise: what is wrong, what is expected, and the next
//! command.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Command};
use ringwise_flow::FlowSpec;
use ringwise_model::{Goal, nearest, shell};

use crate::exit::Fail;

/// A command of ringwise, its arguments, and words of other programs for what it does.
type OtherWords = (&'static [&'static str], &'static str, &'static [&'static str]);

const OTHER_WORDS: [OtherWords; 27] = [
    (&["__completions"], "SHELL", &["completions", "completion", "complete"]),
    (&["__man"], "DIR", &["man", "manpage", "manpages"]),
    (&["help"], "", &["usage", "commands"]),
    (&["help"], "rules", &["rules"]),
    (&[], "--version", &["version"]),
    (&["status"], "", &["state", "summary", "overview", "info", "dashboard"]),
    (&["show"], "", &["list", "ls", "interfaces", "devices", "queues", "get", "print", "topology"]),
    (&["check"], "", &["doctor", "diagnose", "lint", "audit", "analyze", "analyse", "health", "test"]),
    (&["explain"], "", &["trace", "path", "flow", "flows", "route", "why"]),
    (&["plan"], "", &["preview", "dry-run", "dryrun", "propose", "recommend"]),
    (&["plan"], "-o diff", &["diff", "changes"]),
    (&["plan"], "-o sh", &["script"]),
    (&["apply"], "", &["tune", "set", "start", "optimize", "optimise", "run", "fix", "auto", "goal", "profile"]),
    (&["confirm"], "", &["commit", "accept", "keep", "ok"]),
    (&["verify"], "", &["drift", "validate"]),
    (&["show"], "--compare FILE", &["compare"]),
    (&["watch"], "", &["top", "monitor", "stats", "statistics", "live", "counters"]),
    (&["export"], "", &["metrics", "exporter", "prometheus", "serve"]),
    (&["rollback"], "", &["undo", "revert", "restore", "back", "abort", "cancel"]),
    (&["rollback"], "0", &["reset", "stop", "untune"]),
    (&["persist"], "", &["save", "enable", "install", "boot"]),
    (&["persist"], "--remove", &["disable", "uninstall", "unpersist"]),
    (&["history"], "", &["log", "logs", "journal", "transactions"]),
    (&["bench"], "", &["benchmark", "measure", "perf", "load"]),
    (&["capture"], "", &["record", "dump", "snapshot", "collect"]),
    (&["config", "init"], "", &["init", "generate", "template"]),
    (&["config", "import"], "", &["import", "migrate"]),
];

fn other_words(word: &str) -> Option<&'static OtherWords> {
    OTHER_WORDS.iter().find(|(.., words)| words.contains(&word))
}

/// The command of ringwise for a word of other programs, without its arguments: `["rollback"]`.
pub(crate) fn command_for(word: &str) -> Option<Vec<String>> {
    other_words(word).map(|(command, ..)| command.iter().map(|w| (*w).to_string()).collect())
}

/// Converts an error of the parser. `words`: the arguments of the program. `None`: help or version, which clap prints.
pub(crate) fn of(e: &clap::Error, words: &[String], is_interface: impl Fn(&str) -> bool) -> Option<Fail> {
    use ErrorKind as K;
    if matches!(
        e.kind(),
        K::DisplayHelp | K::DisplayVersion | K::DisplayHelpOnMissingArgumentOrSubcommand | K::Io | K::Format
    ) {
        return None;
    }
    let root = super::command();
    let (name, command) = called(&root, words);
    if let Some(second) = second_capture(e, words) {
        let message = format!("{name} reads one capture; found a second one, {second}. {SEVERAL}");
        return Some(Fail::usage(message).next(format!("{name} --help")));
    }
    if e.kind() == K::InvalidSubcommand {
        let word = text(e, ContextKind::InvalidSubcommand);
        let fail = unknown_command(&word, &name, command, is_interface);
        return Some(with_arguments(fail, &word, words, &root));
    }
    if e.kind() == K::MissingRequiredArgument && command.get_name() == "adopt" {
        return Some(Fail::usage("adopt needs the names of interfaces, or --all").next("ringwise adopt --all"));
    }
    if e.kind() == K::UnknownArgument
        && command.get_name() == "watch"
        && text(e, ContextKind::InvalidArg).starts_with("--from")
    {
        let message = "ringwise watch has no option --from: it shows this host as it runs, or what it recorded";
        return Some(Fail::usage(message).next("ringwise watch --replay FILE"));
    }
    let message = match e.kind() {
        K::UnknownArgument => unknown_argument(&text(e, ContextKind::InvalidArg), &name, command, &root),
        _ => message(e),
    };
    Some(Fail::usage(message).next(format!("{name} --help")))
}

/// Ends the error of a command to which several captures are given.
pub(crate) const SEVERAL: &str = "ringwise check, plan and config check read several";

/// The word that is refused, if it is a second capture behind `--from`.
fn second_capture(e: &clap::Error, words: &[String]) -> Option<String> {
    let first = words.iter().position(|w| w == "--from" || w.starts_with("--from="))?;
    let word = match e.kind() {
        ErrorKind::InvalidSubcommand => text(e, ContextKind::InvalidSubcommand),
        ErrorKind::UnknownArgument => text(e, ContextKind::InvalidArg),
        ErrorKind::ArgumentConflict if option_name(&text(e, ContextKind::InvalidArg)) == "--from" => {
            let again = words.iter().skip(first + 1).position(|w| w == "--from")? + first + 1;
            return words.get(again + 1).cloned();
        }
        _ => return None,
    };
    let is_capture = ringwise_sys::has_capture_name(std::path::Path::new(&word));
    (is_capture && words.iter().skip(first + 1).any(|w| *w == word)).then_some(word)
}

/// The message alone, for flags inside a value, such as those of a state of `bench`.
pub(crate) fn message(e: &clap::Error) -> String {
    let (arg, found) = (text(e, ContextKind::InvalidArg), text(e, ContextKind::InvalidValue));
    let option = option_name(&arg);
    match e.kind() {
        ErrorKind::UnknownArgument => {
            let near = Some(text(e, ContextKind::SuggestedArg)).filter(|n| !n.is_empty());
            unknown(&arg) + &near.map_or_else(String::new, |n| format!("; did you mean {n}?"))
        }
        ErrorKind::InvalidValue => {
            let known = texts(e, ContextKind::ValidValue);
            let expected = if known.is_empty() { placeholder(&arg) } else { list(&known, "or") };
            match nearest(&found, known.iter().map(String::as_str)) {
                _ if found.is_empty() => format!("{option} needs a value; expected {expected}"),
                Some(near) => format!("{option}: expected {expected}; found \"{found}\", did you mean {near}?"),
                None => format!("{option}: expected {expected}; found \"{found}\""),
            }
        }
        ErrorKind::ValueValidation => match e.source() {
            Some(why) => format!("{option}: {why}"),
            None => format!("{option}: \"{found}\" is not valid"),
        },
        ErrorKind::ArgumentConflict => {
            let others: Vec<String> = texts(e, ContextKind::PriorArg).iter().map(|o| option_name(o)).collect();
            match others.as_slice() {
                [one] if *one == option => format!("{option} is given more than once"),
                [] => format!("{option} cannot be used with the other options"),
                others => format!("{option} cannot be used with {}", list(others, "or")),
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let missing: Vec<String> = texts(e, ContextKind::InvalidArg).iter().map(|m| plain(m)).collect();
            format!("{} {} missing", list(&missing, "and"), if missing.len() == 1 { "is" } else { "are" })
        }
        ErrorKind::TooManyValues => format!("{option} takes no such value: found \"{found}\""),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues | ErrorKind::NoEquals => {
            format!("{option}: the number of values is wrong; expected {}", placeholder(&arg))
        }
        ErrorKind::InvalidUtf8 => "an argument is not valid UTF-8".into(),
        other => other.as_str().unwrap_or("the command line cannot be read").to_string(),
    }
}

/// The command that these arguments call, with its name as typed.
fn called<'a>(root: &'a Command, words: &[String]) -> (String, &'a Command) {
    let (mut name, mut command) = ("ringwise".to_string(), root);
    for word in words {
        if let Some(sub) = command.find_subcommand(word).filter(|c| !c.is_hide_set()) {
            name = format!("{name} {word}");
            command = sub;
        }
    }
    (name, command)
}

/// The proposed command with the arguments behind the wrong word, if they are valid for it.
fn with_arguments(mut fail: Fail, word: &str, words: &[String], root: &Command) -> Fail {
    let Some(at) = words.iter().position(|w| w == word) else { return fail };
    let rest = &words[at + 1..];
    if let Some(next) = fail.next.take() {
        let whole = format!("{next} {}", shell::join(rest.iter().cloned()));
        let is_valid = |line: &str| {
            let words = shell::split(line).unwrap_or_default();
            root.clone().try_get_matches_from(words).is_ok()
        };
        fail.next = Some(if !rest.is_empty() && is_valid(&whole) { whole } else { next });
    }
    fail
}

fn unknown_command(word: &str, name: &str, command: &Command, is_interface: impl Fn(&str) -> bool) -> Fail {
    let visible = || command.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name);
    let near = nearest(word, visible());
    if name != "ringwise" {
        let meant = near.map_or_else(String::new, |n| format!(", did you mean {n}?"));
        let known: Vec<&str> = visible().collect();
        let message = format!("{name}: expected {}; found \"{word}\"{meant}", list(&known, "or"));
        let next = near.map_or_else(|| format!("{name} --help"), |n| format!("{name} {n}"));
        return Fail::usage(message).next(next);
    }
    let lower = word.to_lowercase();
    let other = || {
        let (command, arguments, _) = other_words(&lower)?;
        let all = ["ringwise"].iter().chain(*command).chain([arguments]).filter(|w| !w.is_empty());
        Some(all.copied().collect::<Vec<_>>().join(" "))
    };
    let value = || match () {
        () if is_interface(word) => Some(format!("ringwise show {word}")),
        () if word.parse::<FlowSpec>().is_ok() => Some(format!("ringwise explain {word}")),
        () if word.parse::<Goal>().is_ok() => Some(format!("ringwise plan --goal {word}")),
        () => ringwise_check::find(word).map(|r| format!("ringwise check --explain {}", r.id)),
    };
    let topic = || ringwise_render::topics::find(&lower).map(|_| format!("ringwise help {lower}"));
    match value().or_else(other).or_else(topic).or_else(|| near.map(|n| format!("ringwise {n}"))) {
        Some(meant) => Fail::usage(format!("there is no command \"{word}\"; did you mean {meant}?")).next(meant),
        None => Fail::usage(format!("there is no command \"{word}\"")).next("ringwise --help"),
    }
}

fn unknown(arg: &str) -> String {
    match arg.starts_with('-') {
        true => format!("there is no option {arg}"),
        false => format!("unexpected argument \"{arg}\""),
    }
}

fn unknown_argument(arg: &str, name: &str, command: &Command, root: &Command) -> String {
    let Some(word) = arg.strip_prefix('-') else { return unknown(arg) };
    let (long, word) = (word.strip_prefix('-'), word.strip_prefix('-').unwrap_or(word));
    let has = |c: &Command| match long {
        Some(long) => longs(c).any(|l| l == long),
        None => shorts(c).any(|s| word.chars().eq([s])),
    };
    let mut others = commands(root, "", &has);
    if long.is_none() {
        // A letter is common to many commands; those of bench are no example.
        others.retain(|name| !name.contains(' '));
    }
    let of = format!("{name} has no option {arg}");
    match nearest(word, longs(command).chain(longs(root))) {
        _ if !others.is_empty() => format!("{of}; it is an option of {}", list(&others, "and")),
        Some(near) if arg.starts_with("--") => format!("{of}; did you mean --{near}?"),
        _ => of,
    }
}

/// Names of the visible commands below `root` for which `has` is true: `plan`, `config show`.
fn commands(root: &Command, above: &str, has: &dyn Fn(&Command) -> bool) -> Vec<String> {
    let mut out = Vec::new();
    for c in root.get_subcommands().filter(|c| !c.is_hide_set()) {
        let name = format!("{above}{}", c.get_name());
        let below = commands(c, &format!("{name} "), has);
        out.extend(has(c).then_some(name));
        out.extend(below);
    }
    out
}

/// Letters of visible options.
fn shorts(c: &Command) -> impl Iterator<Item = char> {
    c.get_arguments().filter(|a| !a.is_hide_set()).filter_map(|a| a.get_short())
}

/// Names of visible options. Those of every command belong to the root only.
fn longs(c: &Command) -> impl Iterator<Item = &str> {
    let known = c.get_arguments().filter(|a| !a.is_hide_set() && !matches!(a.get_action(), ArgAction::Version));
    known.filter_map(|a| a.get_long())
}

fn texts(e: &clap::Error, kind: ContextKind) -> Vec<String> {
    match e.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(all)) => all.clone(),
        _ => Vec::new(),
    }
}

fn text(e: &clap::Error, kind: ContextKind) -> String {
    texts(e, kind).into_iter().next().unwrap_or_default()
}

/// `--smt` of `--smt <HOW>`; `ID` of `[ID]`.
fn option_name(arg: &str) -> String {
    plain(arg.split(' ').next().unwrap_or_default())
}

/// `HOW` of `--smt <HOW>`.
fn placeholder(arg: &str) -> String {
    plain(arg.rsplit(' ').next().unwrap_or_default())
}

/// Without the brackets of usage lines.
fn plain(arg: &str) -> String {
    arg.replace(['<', '>', '[', ']'], "")
}

/// `a, b and c`
fn list<T: AsRef<str>>(all: &[T], last: &str) -> String {
    match all {
        [] => String::new(),
        [one] => one.as_ref().to_string(),
        [first @ .., end] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} {last} {}", first.join(", "), end.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message and the next command.
    fn error(line: &str) -> (String, String) {
        let words = ringwise_model::shell::split(line).unwrap();
        let e = crate::args::parse(std::iter::once("ringwise".to_string()).chain(words.iter().cloned())).unwrap_err();
        let fail = of(&e, &words, |w| w == "enp3s0").unwrap();
        (fail.message, fail.next.unwrap_or_default())
    }

    #[test]
    fn values_name_what_is_expected_and_what_was_found() {
        for (line, message) in [
            ("plan --queues 0", "--queues: expected a whole number of at least 1; found \"0\""),
            ("plan --queues -1", "--queues: expected a whole number of at least 1; found \"-1\""),
            ("rollback x", "ID: expected a whole number; found \"x\""),
            ("watch --per-flow --sample 0", "--sample: expected a whole number from 1 to 1,048,576; found \"0\""),
            ("plan --smt al", "--smt: expected one-per-core or all; found \"al\", did you mean all?"),
            ("plan --smt 2", "--smt: expected one-per-core or all; found \"2\""),
            ("plan --out", "--out needs a value; expected FILE"),
            ("plan --smt", "--smt needs a value; expected one-per-core or all"),
            (
                "plan --goal router",
                "--goal: \"router\" is not a goal; did you mean forward? Goals are balanced, forward, rpc, stream, \
                 latency, mixed and auto",
            ),
            (
                "export --listen localhost",
                "--listen: expected an IP address and a port, e.g. 192.0.2.7:4710 or [2001:db8::7]:4710; found \
                 \"localhost\"",
            ),
            ("verify --for 5x", "--for: expected a time in ms, s, m or h, e.g. 500ms or 5s; found \"5x\""),
            ("apply --yes --yes", "--yes is given more than once"),
            ("plan --passive --from x", "--passive cannot be used with --from"),
            ("plan --override-config", "--goal GOAL is missing"),
            ("confirm now", "unexpected argument \"now\""),
            ("apply --yes=3", "--yes takes no such value: found \"3\""),
        ] {
            assert_eq!(error(line).0, message, "{line}");
        }
        assert_eq!(error("plan --queues 0").1, "ringwise plan --help");
        assert_eq!(error("bench rr --pairs 0").1, "ringwise bench rr --help");
    }

    #[test]
    fn options_of_other_commands_and_typing_errors() {
        for (line, message) in [
            ("plan --goall rpc", "ringwise plan has no option --goall; did you mean --goal?"),
            ("--queues 4", "ringwise has no option --queues; it is an option of plan, apply, watch and persist"),
            (
                "watch --from x",
                "ringwise watch has no option --from: it shows this host as it runs, or what it recorded",
            ),
            ("show --unknown", "ringwise show has no option --unknown"),
            ("show -x", "ringwise show has no option -x"),
            (
                "confirm -n",
                "ringwise confirm has no option -n; it is an option of apply, rollback, adopt, recover, support and persist",
            ),
        ] {
            assert_eq!(error(line).0, message, "{line}");
        }
    }

    #[test]
    fn commands_that_were_meant() {
        for (word, command) in [
            ("rolback", "rollback"),
            ("stat", "status"),
            ("undo", "rollback"),
            ("compare", "show --compare FILE"),
            ("completions", "__completions SHELL"),
            ("diff", "plan -o diff"),
            ("enp3s0", "show enp3s0"),
            ("forward", "plan --goal forward"),
            ("rps", "help rps"),
            ("a2", "check --explain A02"),
            ("10.0.0.1:1-10.0.0.2:80/tcp", "explain 10.0.0.1:1-10.0.0.2:80/tcp"),
        ] {
            let expected = format!("there is no command \"{word}\"; did you mean ringwise {command}?");
            assert_eq!(error(word), (expected, format!("ringwise {command}")));
        }
        // Arguments that the command does not accept are not repeated.
        assert_eq!(error("paln --goal rpc --from a.tar.gz").1, "ringwise plan --goal rpc --from a.tar.gz");
        assert_eq!(error("paln --colour").1, "ringwise plan");
        assert_eq!(error("xyzzy"), ("there is no command \"xyzzy\"".into(), "ringwise --help".into()));
        let message =
            "ringwise config: expected check, show, init, import, export or schema; found \"shw\", did you mean show?";
        assert_eq!(error("config shw"), (message.into(), "ringwise config show".into()));
    }

    /// The first screen names the commands that have both -n and -y.
    #[test]
    fn the_first_screen_names_the_commands_that_can_show_and_agree() {
        let mut root = crate::args::command();
        let both = |c: &Command| ['n', 'y'].iter().all(|o| shorts(c).any(|s| s == *o));
        let has = |c: &&Command| !c.is_hide_set() && (both(c) || c.get_subcommands().any(both));
        let mut having: Vec<String> = root.get_subcommands().filter(has).map(|c| c.get_name().to_string()).collect();
        let help = root.render_help().to_string();
        let named = help.split("Of apply, ").nth(1).and_then(|t| t.split(": -n").next()).unwrap();
        let mut named: Vec<String> = named.split(", ").chain(["apply"]).map(str::to_string).collect();
        having.sort();
        named.sort();
        assert_eq!(named, having);
    }

    #[test]
    fn proposed_commands_exist() {
        let root = crate::args::command();
        for (command, arguments, words) in OTHER_WORDS {
            let found = command.iter().try_fold(&root, |at, word| at.find_subcommand(word));
            assert!(found.is_some() && (!command.is_empty() || arguments.starts_with("--")), "{command:?} {arguments}");
            for w in words {
                assert_eq!(OTHER_WORDS.iter().filter(|(.., all)| all.contains(w)).count(), 1, "{w}");
            }
        }
    }
}
