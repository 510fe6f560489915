//! Generates man pages and completions from the flag table. The command is hidden, because only packagers need it.

use std::path::Path;

use crate::args::command;
use crate::exit::{Fail, Result, Status};
use crate::out;

/// Writes `ringwise.8`, `ringwise-COMMAND.8`, `ringwise-bench-rr.8` and the like into `dir`.
pub(super) fn man(dir: &Path) -> Result<Status> {
    std::fs::create_dir_all(dir).map_err(|e| Fail::error(format!("{}: {e}", dir.display())))?;
    let root = command();
    let version = env!("CARGO_PKG_VERSION");
    let write = |cmd: clap::Command, words: &str| -> Result<()> {
        let mut text = Vec::new();
        let (usage, name) = (synopsis(&cmd, words), &words.replace(' ', "-"));
        clap_mangen::Man::new(cmd)
            .section("8")
            .title(name)
            .source(format!("ringwise {version}"))
            .manual("System Administration")
            .render(&mut text)
            .map_err(|e| Fail::error(format!("{name}: {e}")))?;
        let text = with_synopsis(&String::from_utf8_lossy(&text), &usage);
        let file = dir.join(format!("{name}.8"));
        std::fs::write(&file, text).map_err(|e| Fail::error(format!("{}: {e}", file.display())))
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
    std::fs::write(&file, config_page(version)).map_err(|e| Fail::error(format!("{}: {e}", file.display())))?;
    Ok(Status::Ok)
}

/// `ringwise.toml(5)`, from the table that also validates the file.
fn config_page(version: &str) -> String {
    use ringwise_config::spec;
    let roff = |t: &str| t.replace('\\', "\\\\").replace('-', "\\-");
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
    ];
    for s in all {
        out += &format!(".SH {}\n", roff(&s.name.to_uppercase()));
        for k in s.keys {
            let what = ringwise_config::what(&k.kind);
            out += &format!(".TP\n.B {}\n{}: {}.\n", roff(k.name), roff(&what), roff(k.about));
        }
    }
    out += ".SH FILES\n/etc/ringwise/ringwise.toml\n.SH SEE ALSO\nringwise\\-config(8), ringwise\\-persist(8)\n";
    out
}

pub(super) fn completions(shell: clap_complete::Shell) -> Result<Status> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "ringwise", &mut text);
    out::file(&String::from_utf8_lossy(&text))?;
    Ok(Status::Ok)
}

/// Every flag with the name of its value, which clap's generator omits.
fn synopsis(cmd: &clap::Command, words: &str) -> String {
    let roff = |t: &str| t.replace('-', "\\-");
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

/// Replaces the synopsis of a page by this line.
fn with_synopsis(page: &str, usage: &str) -> String {
    let head = ".SH SYNOPSIS\n";
    let Some((before, rest)) = page.split_once(head) else { return page.to_string() };
    let after = rest.find("\n.SH").map_or("", |at| &rest[at..]);
    format!("{before}{head}{usage}{after}")
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
        let page = with_synopsis(".TH x\n.SH SYNOPSIS\nold\n.SH OPTIONS\nmore\n", "new");
        assert_eq!(page, ".TH x\n.SH SYNOPSIS\nnew\n.SH OPTIONS\nmore\n");
    }
}
