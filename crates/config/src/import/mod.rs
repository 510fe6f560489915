//! Reads settings from the files of other programs and from a host, and makes a configuration of them.
//!
//! ```text
//!   text of a file ─► irqbalance, link, tuned, … ─► Imported (settings and their places, what is not carried over)
//!   Snapshot ───────► in_effect ────────────────────────┤
//!                                                        └─► choose ─► Chosen ─► not_imported ─► print
//! ```
//!
//! The texts are hostile input: a file that is too large is refused, names are escaped, and everything that is not
//! understood is listed with its line.

mod choose;
mod devices;
mod in_effect;
mod irqbalance;
mod link;
mod network_manager;
mod nmstate;
mod not_imported;
mod part;
mod perftune;
mod print;
mod tuned;
mod words;
mod yaml;

pub use choose::{Chosen, ChosenSetting, Conflict, choose};
pub use in_effect::in_effect;
pub use irqbalance::irqbalance;
pub use link::link;
pub use network_manager::network_manager;
pub use nmstate::nmstate;
pub use not_imported::not_imported;
pub use part::{ImportedValue, PresentValue};
pub use perftune::perftune;
pub use print::print;
pub use tuned::tuned;

use ringwise_kfmt::ini;
use ringwise_model::words::visible;
use ringwise_model::{ConfiguredBy, Goal};

/// Largest file that is read, in bytes. Files of this kind have a few kilobytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// A file of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignFile {
    /// Its path, for the places of its settings.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// A setting, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSetting {
    /// The interface. `None`: a setting of the host.
    pub dev: Option<String>,
    /// The setting and its value.
    pub part: ImportedValue,
    /// The line of a file, or the host itself.
    pub by: ConfiguredBy,
}

/// Something that the configuration does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCarried {
    /// The line of a file, or the host itself.
    pub by: ConfiguredBy,
    /// As it was found: `mtu=9000`.
    pub what: String,
    /// The reason.
    pub why: String,
    /// Nothing of the file was read.
    pub whole_file: bool,
}

impl std::fmt::Display for NotCarried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", place(&self.by), visible(&self.what), visible(&self.why))
    }
}

/// What all sources contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The goal of the file. Interrupts and XPS masks are settings only where it would change them.
    pub goal: Goal,
    /// Settings, in the order in which they were found.
    pub found: Vec<FoundSetting>,
    /// What has no equivalent, or was not understood.
    pub not_carried: Vec<NotCarried>,
}

impl Imported {
    /// Adds a setting.
    pub fn add(&mut self, dev: Option<&str>, part: ImportedValue, by: &ConfiguredBy) {
        self.found.push(FoundSetting { dev: dev.map(str::to_string), part, by: by.clone() });
    }

    /// Lists something that is not carried over.
    pub fn leave(&mut self, by: &ConfiguredBy, what: impl Into<String>, why: impl Into<String>) {
        let (what, why) = (shortened(what.into()), why.into());
        self.not_carried.push(NotCarried { by: by.clone(), what, why, whole_file: false });
    }

    /// Lists a file of which nothing was read. `by`: its first line that was not understood.
    pub fn refuse(&mut self, by: &ConfiguredBy, why: impl Into<String>) {
        let (what, why) = ("the file".to_string(), why.into());
        self.not_carried.push(NotCarried { by: by.clone(), what, why, whole_file: true });
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.found.len() + self.not_carried.len()
    }
}

impl ForeignFile {
    /// A line of the file.
    pub fn at(&self, line: usize) -> ConfiguredBy {
        ConfiguredBy::File { path: self.path.clone(), line }
    }

    /// The settings of a file with sections; none if the file is too large, which is listed.
    fn settings(&self, out: &mut Imported) -> Vec<ini::IniSetting> {
        if self.is_too_large(out) { Vec::new() } else { ini::parse(&self.text) }
    }

    fn is_too_large(&self, out: &mut Imported) -> bool {
        let large = self.text.len() > MAX_FILE_BYTES;
        if large {
            out.refuse(&self.at(1), format!("it is larger than {MAX_FILE_BYTES} bytes"));
        }
        large
    }
}

/// `path line 3`, or `in effect now`, on one line.
fn place(by: &ConfiguredBy) -> String {
    match by {
        ConfiguredBy::InEffect => "in effect now".into(),
        by => visible(&by.to_string()).into_owned(),
    }
}

/// Texts of hostile files may be long.
fn shortened(text: String) -> String {
    const MAX_CHARS: usize = 400;
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
