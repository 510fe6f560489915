//! The capabilities of the output: width, colour, character set.

use crate::propose::RecordingName;

/// How to print. Renderers use this and read nothing else of the terminal and the environment.
#[derive(Debug, Clone)]
pub struct Style {
    /// Columns of the terminal. `None`: not a terminal; nothing is folded or truncated.
    pub width: Option<usize>,
    /// Colours and attributes of a terminal (SGR sequences) are allowed.
    pub color: bool,
    /// Only ASCII characters in marks and lines.
    pub ascii: bool,
    /// How often `--verbose` was given.
    pub verbose: u8,
    /// Times are in UTC instead of local time.
    pub utc: bool,
    /// Show hex masks in addition to lists of CPUs.
    pub raw: bool,
    /// The recording that the page is about, for the commands that it proposes.
    pub recording: RecordingName,
}

/// The marks of a matrix or a plan line. The character carries the meaning; the colour only repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The interrupt is delivered here, on the node of the device.
    Here,
    /// It is delivered here, on another node than the device's.
    Far,
    /// It is delivered here, and the CPU is isolated.
    HereIsolated,
    /// It could be delivered here.
    Could,
    /// It could be delivered here, but the CPU is isolated.
    Isolated,
    /// The CPU is offline.
    Offline,
    /// The mask allows this CPU, and where the interrupt is delivered is unknown.
    Unknown,
}

impl Mark {
    /// Whether the interrupt is delivered to this CPU.
    pub fn is_delivery(self) -> bool {
        matches!(self, Self::Here | Self::Far | Self::HereIsolated)
    }
}

/// Colours and attributes, by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    /// Loses packets, or failed.
    Red,
    /// Needs attention.
    Yellow,
    /// Verified.
    Green,
    /// Less important than the rest.
    Dim,
    /// Headings and what matters most.
    Bold,
}

impl Style {
    /// The style for files and golden tests: no colours, UTC.
    pub fn plain(width: Option<usize>) -> Self {
        let recording = RecordingName::default();
        Self { width, color: false, ascii: false, verbose: 0, utc: true, raw: false, recording }
    }

    /// The same style for a page about the file of `--from`.
    pub fn about(self, recording: &RecordingName) -> Self {
        Self { recording: recording.clone(), ..self }
    }

    /// The width of running text: that of the terminal, but at most 100; 80 if it is unknown.
    pub fn text_width(&self) -> usize {
        self.width.unwrap_or(80).min(100)
    }

    /// The character of a mark; it depends on `ascii`.
    pub fn mark(&self, m: Mark) -> char {
        match (m, self.ascii) {
            (Mark::Here, false) => '×',
            (Mark::Here, true) => 'X',
            (Mark::Far, _) => '!',
            (Mark::HereIsolated, _) => '#',
            (Mark::Could, false) => '·',
            (Mark::Could, true) => '.',
            (Mark::Isolated, _) => 'i',
            (Mark::Offline, _) => '-',
            (Mark::Unknown, _) => '?',
        }
    }

    /// The multiplication sign in `·×56`, or its ASCII replacement.
    pub fn times(&self) -> char {
        if self.ascii { 'x' } else { '×' }
    }

    /// The text in this colour, or unchanged if colours are off. The escape sequences do not count as width.
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
