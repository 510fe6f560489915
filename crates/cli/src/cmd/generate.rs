//! Generates man pages and completions from the flag table. The command is hidden, because only packagers need it.

use std::path::Path;

use crate::args::command;
use crate::exit::{Fail, Result, Status};
use crate::out;

/// Writes `ringwise.8`, `ringwise-COMMAND.8`, `ringwise-bench-rr.8` and the like into `dir`.
pub(super) fn man(dir: &Path) -> Result<Status> {
    std::fs::create_dir_all(dir).map_err(|e| Fail::io(dir.display(), &e))?;
    let root = command();
    let version = env!("CARGO_PKG_VERSION");
    let write = |cmd: clap::Command, words: &str| -> Result<()> {
        let name = words.replace(' ', "-");
        let text = command_page(cmd, words, version).map_err(|e| Fail::io(&name, &e))?;
        let file = dir.join(format!("{name}.8"));
        std::fs::write(&file, text).map_err(|e| Fail::io(file.display(), &e))
    };
    let mut built = root.clone();
    built.build();
    // Includes subcommands of commands; the page of a command names their pages.
    let mut rest: Vec<(String, &clap::Command)> = vec![("ringwise".into(), &built)];
    while let Some((words, cmd)) = rest.pop() {
        for sub in cmd.get_subcommands().filter(|c| !c.is_hide_set()) {
            let words = format!("{words} {}", sub.get_name());
            // clap needs a static name, so it is leaked. There is one per command, and the program ends right away.
            write(sub.clone().name(&*Box::leak(words.replace(' ', "-").into_boxed_str())), &words)?;
            rest.push((words, sub));
        }
    }
    write(root, "ringwise")?;
    let file = dir.join("ringwise.toml.5");
    std::fs::write(&file, config_page(version)).map_err(|e| Fail::io(file.display(), &e))?;
    Ok(Status::Ok)
}

/// Writes the units and the udev rule of a package below `root`.
pub(super) fn units(root: &Path) -> Result<Status> {
    let units = ringwise_persist::Units {
        program: super::persist::INSTALLED,
        config: ringwise_model::DEFAULT_CONFIG,
        state_dir: None,
        follow: true,
    };
    for (path, text) in units.packaged() {
        let file = root.join(path);
        let dir = file.parent().unwrap_or(root);
        std::fs::create_dir_all(dir).map_err(|e| Fail::io(dir.display(), &e))?;
        std::fs::write(&file, text).map_err(|e| Fail::io(file.display(), &e))?;
    }
    Ok(Status::Ok)
}

/// The page of a command. `words`: the command as typed.
fn command_page(cmd: clap::Command, words: &str, version: &str) -> std::io::Result<String> {
    let command = words.strip_prefix("ringwise").unwrap_or(words).trim_start();
    let (usage, subcommands) = (synopsis(&cmd, words), cmd.get_subcommands().any(|c| !c.is_hide_set()));
    let man = clap_mangen::Man::new(cmd)
        .section("8")
        .title(words.replace(' ', "-"))
        .source(format!("ringwise {version}"))
        .manual("System Administration");
    let (mut head, mut options, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    man.render_title(&mut head)?;
    man.render_name_section(&mut head)?;
    head.extend_from_slice(format!(".SH SYNOPSIS\n{usage}\n").as_bytes());
    man.render_description_section(&mut head)?;
    man.render_options_section(&mut options)?;
    if subcommands {
        man.render_subcommands_section(&mut commands)?;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let page = text(&head) + &one_section(&text(&options)) + &text(&commands) + &behind(command);
    // Each part has these definitions; one is enough.
    let (first, rest) = page.split_once(DEFINITIONS).unwrap_or((&page, ""));
    Ok(format!("{first}{DEFINITIONS}{}", rest.replace(DEFINITIONS, "")))
}

/// How the generator makes apostrophes portable.
const DEFINITIONS: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// Makes subsections of the groups of options.
fn one_section(options: &str) -> String {
    let head = ".SH OPTIONS\n";
    let groups = |rest: &str| rest.replace("\n.SH ", "\n.SS ");
    match options.split_once(head) {
        Some((before, rest)) => format!("{before}{head}{}", groups(rest)),
        None => format!("{head}{}", groups(&format!("\n{options}")).trim_start()),
    }
}

/// The sections behind the options.
fn behind(command: &str) -> String {
    let mut out = String::new();
    let page = match command {
        "" => Some(crate::page::ROOT),
        _ => crate::disturbs::of(command),
    };
    if let Some(p) = page {
        out += &format!(".SH EXIT STATUS\n{}", as_typed(p.status));
        if let Some(own) = p.disturbs {
            out += &format!(".SH WHAT IT DISTURBS\n{}{}", filled(own), filled(crate::page::READING));
        }
        if !p.notes.is_empty() {
            out += &format!(".SH NOTES\n{}", filled(p.notes));
        }
    }
    if command.is_empty() {
        out += ".SH ENVIRONMENT\n";
        for (name, about) in crate::page::ENVIRONMENT {
            out += &format!(".TP\n.B {}\n{}\n", roff(name), roff(about));
        }
    }
    out += ".SH FILES\n";
    for f in crate::page::files(command) {
        out += &format!(".TP\n.I {}\n{}\n", roff(f.path), roff(f.about));
    }
    if let Some(p) = page {
        out += &format!(".SH EXAMPLES\n{}", as_typed(p.examples));
    }
    let above = match command.split_once(' ') {
        Some((first, _)) => vec![format!("ringwise-{first}(8)"), "ringwise(8)".into()],
        None if command.is_empty() => Vec::new(),
        None => vec!["ringwise(8)".to_string()],
    };
    let related = crate::page::see_also(command).iter().map(|p| p.to_string());
    let all: Vec<String> = above.into_iter().chain(related).map(|p| roff(&p)).collect();
    out + &format!(".SH SEE ALSO\n{}\n", all.join(", "))
}

/// Text with its line breaks.
fn as_typed(text: &str) -> String {
    format!(".nf\n{}\n.fi\n", roff(text))
}

/// Paragraphs that the reader's terminal breaks into lines.
fn filled(text: &str) -> String {
    let lines = |p: &str| p.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    text.split("\n\n").map(|p| format!(".PP\n{}\n", roff(&lines(p)))).collect()
}

/// Escapes what a page would take for a command.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines: Vec<String> =
        text.lines().map(|l| if l.starts_with(['.', '\'']) { format!("\\&{l}") } else { l.to_string() }).collect();
    lines.join("\n")
}

/// `ringwise.toml(5)`, from the table that also validates the file.
fn config_page(version: &str) -> String {
    use ringwise_config::spec;
    let mut out = format!(
        ".TH ringwise.toml 5 \"\" \"ringwise {version}\" \"File Formats\"\n.SH NAME\nringwise.toml \\- settings of network \
         interfaces\n.SH DESCRIPTION\nThe file is in TOML. \\fBringwise config check\\fR reports every fault with its line, without \
         reading the host. Options of a command and \\-\\-set override the file.\n"
    );
    let all = [
        &spec::FILE,
        &spec::HOST,
        &spec::INTERFACE,
        &spec::MATCH,
        &spec::PAUSE,
        &spec::CHANNELS,
        &spec::RINGS,
        &spec::COALESCE,
        &spec::PROFILE_STEP,
        &spec::RSS,
        &spec::NAPI,
        &spec::RULE,
        &spec::GROUP,
        &spec::FLOW,
        &spec::POLICY,
        &spec::HOST_GROUP,
        &spec::HOST_MATCH,
    ];
    for s in all {
        out += &format!(".SH {}\n", roff(&s.name.to_uppercase()));
        for k in s.keys {
            let what = ringwise_config::what(&k.kind);
            out += &format!(".TP\n.B {}\n{}: {}.\n", roff(k.name), roff(&what), roff(k.about));
        }
    }
    out += &format!(".SH FILES\n/etc/ringwise/ringwise.toml\n.SH EXAMPLES\n{}", as_typed(CONFIG_EXAMPLE));
    out += ".SH SEE ALSO\nringwise\\-config(8), ringwise\\-persist(8)\n";
    out
}

/// A small file, as an example.
const CONFIG_EXAMPLE: &str = "  version = 1

  [host]
  goal = \"rpc\"
  reserve = \"0\"

  [[interface]]
  match = { name = \"eth0\" }
  channels = 4
  rings = { rx = 1024 }";

pub(super) fn completions(shell: clap_complete::Shell) -> Result<Status> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "ringwise", &mut text);
    out::file(&String::from_utf8_lossy(&text))?;
    Ok(Status::Ok)
}

/// Every flag with the name of its value, which clap's generator omits.
fn synopsis(cmd: &clap::Command, words: &str) -> String {
    let mut parts = vec![format!("\\fB{}\\fR", roff(words))];
    for a in cmd.get_arguments().filter(|a| !a.is_hide_set()) {
        let values: Vec<String> = a.get_value_names().unwrap_or_default().iter().map(|v| v.to_string()).collect();
        let value = format!("\\fI{}\\fR", roff(&values.join(" ")));
        let many = if a.get_num_args().is_some_and(|n| n.max_values() > 1) { " ..." } else { "" };
        let flag = match (a.get_long(), a.get_short()) {
            (Some(l), _) => format!("--{l}"),
            (None, Some(s)) => format!("-{s}"),
            (None, None) if a.is_required_set() => {
                parts.push(value + many);
                continue;
            }
            (None, None) => {
                parts.push(format!("[{value}{many}]"));
                continue;
            }
        };
        let value = if a.get_action().takes_values() { format!(" {value}") } else { String::new() };
        parts.push(format!("[\\fB{}\\fR{value}]", roff(&flag)));
    }
    if cmd.has_subcommands() {
        parts.push("[\\fICOMMAND\\fR]".into());
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_their_values_in_the_synopsis() {
        let mut root = command();
        root.build();
        let plan = root.find_subcommand("plan").expect("plan");
        let text = synopsis(plan, "ringwise plan");
        for words in ["[\\fB\\-\\-goal\\fR \\fIGOAL\\fR]", "[\\fB\\-\\-cpus\\fR \\fILIST\\fR]", "[\\fIDEV\\fR ...]"] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert!(text.contains("[\\fB\\-\\-passive\\fR]"), "{text}");
    }

    #[test]
    fn groups_of_options_are_subsections() {
        assert_eq!(one_section(".SH OPTIONS\na\n.SH INPUT\nb\n"), ".SH OPTIONS\na\n.SS INPUT\nb\n");
        assert_eq!(one_section(".SH INPUT\nb\n.SH OUTPUT\nc\n"), ".SH OPTIONS\n.SS INPUT\nb\n.SS OUTPUT\nc\n");
    }

    #[test]
    fn texts_of_a_page() {
        assert_eq!(roff(".a -b\\\n'c"), "\\&.a \\-b\\e\n\\&'c");
        assert_eq!(filled("  a\n  b\n\nc"), ".PP\na\nb\n.PP\nc\n");
    }

    #[test]
    fn the_example_of_the_configuration_is_valid() {
        let lines: Vec<&str> = CONFIG_EXAMPLE.lines().map(str::trim).collect();
        assert!(ringwise_config::parse("example", &lines.join("\n")).is_ok());
    }
}
