//! Redacts command lines: the program and the names of its flags stay. A value stays if it can only be a number, a list of CPUs
//! or one of a few words, and is needed for a plan or a finding.

use super::names::Pseudonyms;

/// A flag of a program, as `--goal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// With its dashes, long or short: `--goal`, `-n`.
    pub name: String,
    /// Whether its value may stay in a redacted command line.
    pub value: FlagValue,
}

/// What kind of value follows a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagValue {
    /// A switch, which has no value.
    Nothing,
    /// Text, files, commands.
    Private,
    /// Numbers, times, lists of CPUs, or one of a few words. Recorded intents consist of them.
    Plain,
}

/// The grammar of a program's command lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grammar {
    /// Name of the program without its directory; the first word of a command line ends with it.
    pub program: String,
    /// Names of all subcommands; they stay in a redacted command line.
    pub commands: Vec<String>,
    /// Flags of the program and of all its subcommands, each name once.
    pub flags: Vec<Flag>,
}

/// How much of a command line stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Flags by name only.
    Names,
    /// [`FlagValue::Plain`] values and interfaces too; other values become empty.
    Intent,
}

/// Parameters of the kernel command line that a plan needs; of all others only the name stays.
const KERNEL_KEYS: [&str; 15] = [
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "irqaffinity",
    "mitigations",
    "iommu",
    "intel_iommu",
    "amd_iommu",
    "pci",
    "nosmt",
    "maxcpus",
    "intel_idle.max_cstate",
    "processor.max_cstate",
    "idle",
    "nr_cpus",
];

/// Words without a value that the kernel or every distribution uses.
const KERNEL_WORDS: [&str; 22] = [
    "ro",
    "rw",
    "quiet",
    "splash",
    "debug",
    "nosmt",
    "nohz",
    "nomodeset",
    "threadirqs",
    "irqpoll",
    "irqfixup",
    "noirqdebug",
    "noirqbalance",
    "noapic",
    "nolapic",
    "nox2apic",
    "nokaslr",
    "nopti",
    "nowatchdog",
    "nosoftlockup",
    "rhgb",
    "single",
];

/// Values of plain flags that are not numbers.
const PLAIN_WORDS: [&str; 20] = [
    "balanced",
    "forward",
    "rpc",
    "stream",
    "latency",
    "mixed",
    "one-per-core",
    "all",
    "never",
    "last",
    "ok",
    "on",
    "off",
    "auto",
    "default",
    "none",
    "exact",
    "subset",
    "ignore",
    "equal",
];

/// Flags of irqbalance(1): the short and the long form.
const IRQBALANCE: [(&str, &str, FlagValue); 14] = [
    ("-o", "--oneshot", FlagValue::Nothing),
    ("-d", "--debug", FlagValue::Nothing),
    ("-f", "--foreground", FlagValue::Nothing),
    ("-j", "--journal", FlagValue::Nothing),
    ("-h", "--hintpolicy", FlagValue::Plain),
    ("-p", "--powerthresh", FlagValue::Plain),
    ("-i", "--banirq", FlagValue::Plain),
    ("-c", "--deepestcache", FlagValue::Plain),
    ("-e", "--migrateval", FlagValue::Plain),
    ("-t", "--interval", FlagValue::Plain),
    ("-m", "--banmod", FlagValue::Plain),
    ("-b", "--banscript", FlagValue::Private),
    ("-s", "--pid", FlagValue::Private),
    ("-l", "--policyscript", FlagValue::Private),
];

/// The script that passes ringwise's settings to irqbalance.
const OUR_SCRIPT: &str = "ringwise-irqbalance-policy";
/// Directories in which packages install programs.
const PROGRAMS: [&str; 6] = ["/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/", "/usr/local/sbin/", "/usr/local/bin/"];
const KIND: &str = "command line";

/// White space within quotes does not split; the quotes are removed.
fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let (mut word, mut quote, mut any) = (String::new(), None, false);
    for c in text.trim().chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('"' | '\'', None) => (quote, any) = (Some(c), true),
            (c, None) if c.is_whitespace() => {
                if any {
                    out.push(std::mem::take(&mut word));
                }
                any = false;
            }
            (c, _) => {
                word.push(c);
                any = true;
            }
        }
    }
    if any {
        out.push(word);
    }
    out
}

/// Whether a text can only be a name: it is short, and consists of few kinds of characters.
fn is_name(text: &str) -> bool {
    text.len() <= 40
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// Known parameters stay, of others only the name; what follows ` -- ` (the arguments of init) is removed.
pub(super) fn kernel(text: &str, names: &mut Pseudonyms) -> String {
    let mut out = Vec::new();
    for word in words(text) {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(n, v)| (n, Some(v)));
        let known = KERNEL_KEYS.contains(&name)
            && value.is_none_or(|v| {
                v.len() <= 256 && v.bytes().all(|b| b.is_ascii_alphanumeric() || b"_,.:@/+-".contains(&b))
            });
        match value {
            None if word == "--" => {
                names.count(KIND);
                break;
            }
            _ if known => out.push(word),
            Some(value) if is_name(name) => {
                if !value.is_empty() {
                    names.count(KIND);
                }
                out.push(format!("{name}="));
            }
            None if KERNEL_WORDS.contains(&name) => out.push(word),
            _ => names.count(KIND),
        }
    }
    out.join(" ") + "\n"
}

fn is_plain(value: &str) -> bool {
    let number =
        value.strip_suffix("ms").or_else(|| value.strip_suffix(['s', 'm', 'h', 'd', 'k', 'M'])).unwrap_or(value);
    let digits = number.len() <= 64
        && number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|b| b.is_ascii_digit() || b",-.:/^".contains(&b));
    digits && !number.contains("..") && number.split('.').count() < 4 || PLAIN_WORDS.contains(&value)
}

/// Whether this is a setting of a known interface: `eth0.rings.rx=1024`.
fn is_setting(value: &str, interfaces: &[String]) -> bool {
    let Some((key, value)) = value.split_once('=') else { return false };
    let of = |d: &str| key.strip_prefix(d).is_some_and(|k| k.starts_with('.'));
    let known = of("host") || interfaces.iter().any(|d| of(d));
    known && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-@:".contains(&b)) && is_plain(value)
}

/// Redacts a command line of this program that is one text. Words inside quoted values cannot be distinguished from other words.
pub(super) fn line(text: &str, grammar: &Grammar, left: Left, interfaces: &[String], names: &mut Pseudonyms) -> String {
    let mut all = text.split_ascii_whitespace().map(|w| w.trim_matches('\'')).peekable();
    let Some(program) = all.next() else { return String::new() };
    let base = program.rsplit('/').next().unwrap_or_default();
    let mut out = vec![if base == grammar.program { base.to_string() } else { "program".to_string() }];
    let mut dropped = base != program;
    while let Some(word) = all.next() {
        let (name, inline) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let Some(flag) = grammar.flags.iter().find(|f| f.name == name) else {
            let is_value = !word.starts_with('-');
            let is_command = out.len() == 1 && grammar.commands.iter().any(|c| c == word);
            if is_command || left == Left::Intent && interfaces.iter().any(|d| d == word) {
                out.push(word.to_string());
            } else {
                dropped = true;
                if left == Left::Intent {
                    // A replaced value shows that the command was not for the whole host; `--unknown` shows that the line cannot
                    // be parsed.
                    out.push(if is_value { names.string("argument", word) } else { "--unknown".into() });
                }
            }
            continue;
        };
        let value = match (flag.value, inline) {
            (FlagValue::Nothing, _) => None,
            (_, Some(v)) => Some(v),
            (_, None) => all.next_if(|w| !w.starts_with("--")),
        };
        let plain = |v: &&str| flag.value == FlagValue::Plain && (is_plain(v) || is_setting(v, interfaces));
        match (flag.value, left) {
            (FlagValue::Nothing, _) => out.push(name.to_string()),
            (_, Left::Names) => out.push(name.to_string()),
            (_, Left::Intent) => out.push(format!("{name}={}", value.filter(plain).unwrap_or_default())),
        }
        dropped |= value.is_some_and(|v| left == Left::Names || !plain(&v));
    }
    if dropped {
        names.count(KIND);
    }
    out.join(" ")
}

/// The program, with its directory if a package installed it there.
fn program(word: &str) -> String {
    let base = word.rsplit('/').next().unwrap_or_default();
    match PROGRAMS.iter().find(|p| word.strip_prefix(**p) == Some(base)) {
        Some(dir) => format!("{dir}{base}"),
        None => base.to_string(),
    }
}

/// irqbalance's arguments show which interrupts it skips, and a plan needs them.
fn irqbalance(args: &[String], names: &mut Pseudonyms) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = args.iter().peekable();
    while let Some(word) = rest.next() {
        let (name, inline) = match word.split_once('=') {
            Some((n, v)) => (n, Some(v.to_string())),
            // `-l/path`
            None if word.len() > 2 && word.starts_with('-') && !word.starts_with("--") && word.is_char_boundary(2) => {
                (&word[..2], Some(word[2..].to_string()))
            }
            None => (word.as_str(), None),
        };
        let Some((short, long, kind)) = IRQBALANCE.iter().find(|(s, l, _)| *s == name || *l == name) else {
            if word.starts_with("$IRQBALANCE") || word == "$OPTIONS" {
                out.push(word.clone());
            } else {
                out.push(names.string("argument", word));
            }
            continue;
        };
        if *kind == FlagValue::Nothing {
            out.push(name.to_string());
            continue;
        }
        let apart = inline.is_none();
        let Some(value) = inline.or_else(|| rest.next_if(|w| !w.starts_with("--")).cloned()) else {
            out.push(name.to_string());
            continue;
        };
        let base = value.rsplit('/').next().unwrap_or_default();
        let value = match *kind {
            FlagValue::Plain if is_plain(&value) || names.taken.contains(&value) => value,
            _ if *short == "-l" && base == OUR_SCRIPT && value.starts_with("/var/lib/ringwise/") => value,
            _ if *short == "-l" && base == OUR_SCRIPT => format!("/{}/{base}", names.string("path", &value)),
            FlagValue::Private => format!("/{}", names.string("path", &value)),
            _ => names.string("argument", &value),
        };
        if apart {
            out.extend([name.to_string(), value]);
        } else {
            out.push(format!("{long}={value}"));
        }
    }
    out
}

/// `/proc/PID/cmdline`: only the program stays, except for irqbalance.
pub(super) fn arguments(bytes: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    let all: Vec<String> =
        bytes.split(|b| *b == 0).filter(|w| !w.is_empty()).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
    let Some((first, rest)) = all.split_first() else { return Vec::new() };
    let mut out = vec![program(first)];
    if out[0].rsplit('/').next() == Some("irqbalance") {
        out.extend(irqbalance(rest, names));
    } else if !rest.is_empty() {
        names.count("process arguments");
    }
    out.iter().flat_map(|w| w.bytes().chain([0])).collect()
}

/// `ExecStart=` and similar keys.
pub(super) fn exec(text: &str, names: &mut Pseudonyms) -> String {
    let text = text.trim_start_matches(['@', '-', ':', '+', '!']);
    let all = words(text);
    let Some((first, rest)) = all.split_first() else { return String::new() };
    let mut out = vec![program(first)];
    if out[0].rsplit('/').next() == Some("irqbalance") {
        out.extend(irqbalance(rest, names));
    } else if !rest.is_empty() {
        names.count(KIND);
    }
    out.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grammar() -> Grammar {
        let flag = |name: &str, value| Flag { name: name.into(), value };
        Grammar {
            program: "ringwise".into(),
            commands: vec!["apply".into(), "rollback".into()],
            flags: vec![
                flag("--goal", FlagValue::Plain),
                flag("--cpus", FlagValue::Plain),
                flag("--set", FlagValue::Plain),
                flag("--reason", FlagValue::Private),
                flag("--health", FlagValue::Private),
                flag("--yes", FlagValue::Nothing),
            ],
        }
    }

    #[test]
    fn the_kernel_command_line_keeps_what_a_plan_needs() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1-2 quiet isolcpus=managed_irq,2-5 pci=nomsi nosmt ip=10.0.0.1 \
                    hunter2 note=\"my secret phrase\" -- secret=1\n";
        let got = kernel(line, &mut Pseudonyms::default());
        assert_eq!(got, "BOOT_IMAGE= root= quiet isolcpus=managed_irq,2-5 pci=nomsi nosmt ip= note=\n");
    }

    #[test]
    fn of_our_own_command_lines_flags_stay() {
        let text = "/home/anna/ringwise apply eth0 --goal forward --cpus=0-3 --set eth0.rings.rx=1024 \
                    --set eth0.alias=x --reason it was Anna --health curl -u a:b http://h/ --secret --yes";
        let devs = ["eth0".to_string()];
        let n = &mut Pseudonyms::default();
        let names = line(text, &grammar(), Left::Names, &devs, n);
        assert_eq!(names, "ringwise apply --goal --cpus --set --set --reason --health --yes");
        let intent = line(text, &grammar(), Left::Intent, &devs, n);
        assert_eq!(
            intent,
            "ringwise apply eth0 --goal=forward --cpus=0-3 --set=eth0.rings.rx=1024 --set= --reason= argument-1 \
             argument-2 --health= --unknown argument-3 argument-4 --unknown --yes"
        );
        assert_eq!(line("/tmp/x apply", &grammar(), Left::Names, &devs, n), "program apply");
    }

    #[test]
    fn of_arguments_only_those_of_irqbalance_stay() {
        let mut names = Pseudonyms::default();
        let own =
            b"/usr/sbin/irqbalance\0--foreground\0--banirq=7\0-l\0/home/anna/ringwise-irqbalance-policy\0--x=hunter2\0";
        let got = arguments(own, &mut names);
        let want = "/usr/sbin/irqbalance|--foreground|--banirq=7|-l|/path-1/ringwise-irqbalance-policy|argument-1|";
        assert_eq!(String::from_utf8(got).unwrap().replace('\0', "|"), want);
        assert_eq!(arguments(b"/home/anna/mail\0-s\0secret\0", &mut names), b"mail\0");
        assert_eq!(
            exec("-/usr/sbin/irqbalance -f $IRQBALANCE_ARGS -t 5 \"x y\"", &mut names),
            "/usr/sbin/irqbalance -f $IRQBALANCE_ARGS -t 5 argument-2"
        );
    }
}
