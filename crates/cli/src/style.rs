//! The capabilities of the output (width, colours, character set), from arguments, environment and standard output.

use ringwise_sys::proc;
use ringwise_text::{RecordingName, Style};

use crate::args::{ColourWhen, Common};

/// Detects the style of the output.
pub(crate) fn detect(c: &Common) -> Style {
    let out = std::io::stdout();
    let terminal = proc::is_tty(&out);
    let env = |k: &str| std::env::var(k).ok().filter(|v| !v.is_empty());
    let dumb = env("TERM").is_some_and(|t| t == "dumb");
    let color = match c.color {
        ColourWhen::Always => true,
        ColourWhen::Never => false,
        ColourWhen::Auto => terminal && env("NO_COLOR").is_none() && !dumb,
    };
    if color {
        crate::out::with_color();
    }
    let locale = env("LC_ALL").or_else(|| env("LC_CTYPE")).or_else(|| env("LANG")).unwrap_or_default();
    let utf8 = locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    let number = |k: &str| env(k).and_then(|w| w.parse::<usize>().ok());
    Style {
        width: width(
            terminal,
            proc::terminal_size(&out).map(|(w, _)| usize::from(w)),
            number("RINGWISE_COLUMNS"),
            number("COLUMNS"),
        ),
        color,
        ascii: c.ascii || !utf8,
        verbose: c.verbose,
        utc: c.utc,
        raw: false,
        recording: RecordingName::default(),
    }
}

/// The columns of a page. `None`: lines are not folded. `size`: what the terminal reports, which is 0 on some serial lines.
/// `own` is `RINGWISE_COLUMNS`, which overrides `columns`, `COLUMNS`, where the output is not a terminal; 0 does not fold, for
/// scripts on systems that export `COLUMNS`.
fn width(terminal: bool, size: Option<usize>, own: Option<usize>, columns: Option<usize>) -> Option<usize> {
    let given = |w: Option<usize>| w.filter(|w| *w > 0);
    let width = match terminal {
        true => Some(given(size).or(given(columns)).unwrap_or(80)),
        false => given(own.or(columns)),
    };
    width.map(|w| w.max(40))
}

#[cfg(test)]
mod tests {
    use super::width;

    #[test]
    fn a_terminal_has_its_own_width() {
        assert_eq!(width(true, Some(120), Some(60), Some(70)), Some(120));
        assert_eq!(width(true, Some(0), Some(60), Some(70)), Some(70));
        assert_eq!(width(true, None, None, Some(0)), Some(80));
        assert_eq!(width(true, Some(10), None, None), Some(40));
    }

    #[test]
    fn a_pipe_is_folded_only_where_a_width_is_given() {
        assert_eq!(width(false, Some(120), None, None), None);
        assert_eq!(width(false, None, None, Some(70)), Some(70));
        assert_eq!(width(false, None, Some(60), Some(70)), Some(60));
        assert_eq!(width(false, None, Some(0), Some(70)), None);
        assert_eq!(width(false, None, None, Some(0)), None);
        assert_eq!(width(false, None, None, Some(1)), Some(40));
    }
}
