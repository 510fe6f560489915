//! What the place we print to can do: width, colour, character set.

use ringwise_sys::proc;

use crate::args::{Common, When};
use crate::propose::Recording;

/// How to print. Renderers get one and ask nothing else about the world.
#[derive(Debug, Clone)]
pub struct Style {
    /// Columns of the terminal. `None`: not a terminal; nothing is folded or truncated.
    pub width: Option<usize>,
    pub color: bool,
    pub ascii: bool,
    pub verbose: u8,
    pub utc: bool,
    /// Hex masks beside CPU lists.
    pub raw: bool,
    /// What the page is about, for the commands that it proposes.
    pub recording: Recording,
}

/// The marks of a matrix or a plan line: a character first, a colour second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The interrupt lands here, near the device.
    Here,
    /// It lands here, on another node than the device's.
    Far,
    /// It could.
    Could,
    Isolated,
    Offline,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    /// Loses packets, or failed.
    Red,
    /// Look here.
    Yellow,
    /// Verified.
    Green,
    Dim,
    Bold,
}

impl Style {
    /// As golden tests and files see it.
    pub fn plain(width: Option<usize>) -> Self {
        let recording = Recording::default();
        Self { width, color: false, ascii: false, verbose: 0, utc: true, raw: false, recording }
    }

    /// From the environment and standard output.
    pub fn detect(c: &Common) -> Self {
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
            crate::visible::with_color();
        }
        let locale = env("LC_ALL").or_else(|| env("LC_CTYPE")).or_else(|| env("LANG")).unwrap_or_default();
        let utf8 = locale.to_ascii_lowercase().replace('-', "").contains("utf8");
        let width = terminal.then(|| proc::terminal_size(&out).map_or(80, |(w, _)| usize::from(w)));
        Self {
            width: width.map(|w| if w == 0 { 80 } else { w.max(40) }),
            color,
            ascii: c.ascii || !utf8,
            verbose: c.verbose,
            utc: c.utc,
            raw: false,
            recording: Recording::default(),
        }
    }

    /// Of a page about what `--from` names.
    pub fn about(self, recording: &Recording) -> Self {
        Self { recording: recording.clone(), ..self }
    }

    /// Width for running text: of the terminal, at most 100; 80 when unknown.
    pub fn text_width(&self) -> usize {
        self.width.unwrap_or(80).min(100)
    }

    pub fn mark(&self, m: Mark) -> char {
        match (m, self.ascii) {
            (Mark::Here, false) => '×',
            (Mark::Here, true) => 'X',
            (Mark::Far, _) => '!',
            (Mark::Could, false) => '·',
            (Mark::Could, true) => '.',
            (Mark::Isolated, _) => 'i',
            (Mark::Offline, _) => '-',
            (Mark::Unknown, _) => '?',
        }
    }

    /// `×` of counts: `·×56`.
    pub fn times(&self) -> char {
        if self.ascii { 'x' } else { '×' }
    }

    pub fn paint(&self, t: Tint, text: &str) -> String {
        if !self.color {
            return text.to_string();
        }
        let [red, yellow, green, dim, bold, end] = crate::visible::SEQUENCES;
        let begin = match t {
            Tint::Red => red,
            Tint::Yellow => yellow,
            Tint::Green => green,
            Tint::Dim => dim,
            Tint::Bold => bold,
        };
        format!("{begin}{text}{end}")
    }
}
