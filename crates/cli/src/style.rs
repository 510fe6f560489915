//! The capabilities of the output (width, colours, character set), from arguments, environment and standard output.

use ringwise_sys::proc;
use ringwise_text::{Recording, Style};

use crate::args::{Common, When};

/// Detects the style of the output.
pub(crate) fn detect(c: &Common) -> Style {
    let out = std::io::stdout();
    let terminal = proc::is_tty(&out);
    let env = |k: &str| std::env::var(k).ok().filter(|v| !v.is_empty());
    let dumb = env("TERM").is_some_and(|t| t == "dumb");
    let color = match c.color {
        When::Always => true,
        When::Never => false,
        When::Auto => terminal && env("NO_COLOR").is_none() && !dumb,
    };
    if color {
        crate::out::with_color();
    }
    let locale = env("LC_ALL").or_else(|| env("LC_CTYPE")).or_else(|| env("LANG")).unwrap_or_default();
    let utf8 = locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    let width = match terminal {
        true => Some(proc::terminal_size(&out).map_or(80, |(w, _)| usize::from(w))),
        // Not COLUMNS, which some systems export everywhere: scripts would see folded lines.
        false => env("RINGWISE_COLUMNS").and_then(|w| w.parse::<usize>().ok()),
    };
    Style {
        width: width.map(|w| if w == 0 { 80 } else { w.max(40) }),
        color,
        ascii: c.ascii || !utf8,
        verbose: c.verbose,
        utc: c.utc,
        raw: false,
        recording: Recording::default(),
    }
}
