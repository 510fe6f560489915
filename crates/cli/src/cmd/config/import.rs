//! `ringwise config import`: a file from what is in effect and from the configuration of other programs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ringwise_config::import::{self, Chosen, ForeignFile, Imported, MAX_FILE_BYTES};
use ringwise_discover::Options;
use ringwise_discover::foreign_files::{self, ConfiguringProgram};
use ringwise_model::words::visible;
use ringwise_model::{ConfiguredBy, DEFAULT_CONFIG, Snapshot, shell};
use ringwise_sys::trust::ReplacementFile;

use super::{pinned, plannable};
use crate::args::{Common, ConfigImport};
use crate::cmd::goals;
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_text::plural;

/// The configuration belongs to the administrator, and contains no secrets.
const MODE: u32 = 0o644;

pub(super) fn run(a: &ConfigImport, common: &Common) -> Result<Status> {
    if let Some(path) = a.out.as_ref().filter(|p| !a.overwrite && p.symlink_metadata().is_ok()) {
        return Err(exists(path));
    }
    let source = source::open(&a.from)?;
    let s = source.snapshot(&Options::all(), common)?;
    let goal = goals::chosen(a.goal, &source, &s, common);
    let mut imported = Imported { goal, ..Imported::default() };
    let mut missing = Vec::new();
    for program in ConfiguringProgram::ALL {
        let files = files(a, program, &source, &mut imported, &mut missing)?;
        let before = (imported.entries(), imported.not_carried.len());
        read(program, &files, &s, &mut imported);
        if !named(a, program).is_empty() {
            is_of_use(&files, before, &mut imported)?;
        }
    }
    import::in_effect(&s, &mut imported);
    pinned::interrupts(&s, &mut imported);
    pinned::senders(&s, &mut imported);
    let mut chosen = import::choose(imported, &s);
    let refusal = plannable::plan(&mut chosen, &s).err();
    import::not_imported(&s, &mut chosen);
    let mut notes = Vec::new();
    if let Some(why) = &refusal {
        notes.push(format!("No plan is possible on this host: {why}"));
    }
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|p: &ConfiguringProgram| format!("--{}", p.name())).collect();
        notes.push(format!(
            "The recording does not contain all files of other programs; name them: {}",
            names.join(", ")
        ));
    }
    let text = import::print(&chosen, &s, &notes);
    // The text is checked as `config check` does, so that a fault of the import is not found at the next boot.
    ringwise_config::parse("the imported configuration", &text).map_err(|f| invalid(&f))?;
    write(a, &text)?;
    report(&chosen, &notes, common);
    if let Some(path) = &a.out {
        out::answer(&written(path, &chosen))?;
    }
    Ok(Status::Ok)
}

/// The user has no file to which the lines of the faults could refer, so the first fault alone is reported, without its line.
fn invalid(f: &ringwise_config::Faults) -> Fail {
    let first = f.all.first().map_or("", |f| f.found.as_str());
    let text = format!("these sources make no valid configuration ({}): {first}", plural(f.all.len(), "mistake"));
    Fail::error(format!("{text}\nNothing was written. Import with fewer sources, and please report this"))
}

/// Errors: nothing of a file could be read that the user named. Files without a setting of interest are listed.
/// `before`: entries, and entries that are not carried over, before the files were read.
fn is_of_use(files: &[ForeignFile], before: (usize, usize), out: &mut Imported) -> Result<()> {
    if let Some(refused) = out.not_carried[before.1..].iter().find(|n| n.whole_file) {
        return Err(Fail::error(refused.to_string()));
    }
    if let (true, Some(first)) = (out.entries() == before.0, files.first()) {
        out.leave(&first.at(1), "the file", "it has no setting that ringwise knows");
    }
    Ok(())
}

fn exists(path: &Path) -> Fail {
    let text = format!("{} exists already; --overwrite replaces it", path.display());
    Fail::error(text).code("file_exists").file(path)
}

fn named(a: &ConfigImport, program: ConfiguringProgram) -> &[PathBuf] {
    match program {
        ConfiguringProgram::Irqbalance => &a.irqbalance,
        ConfiguringProgram::Link => &a.link,
        ConfiguringProgram::Tuned => &a.tuned,
        ConfiguringProgram::Perftune => &a.perftune,
        ConfiguringProgram::NetworkManager => &a.network_manager,
        ConfiguringProgram::Nmstate => &a.nmstate,
    }
}

/// The named files, or those in the usual places of the program. `missing`: programs whose files a recording lacks.
fn files(
    a: &ConfigImport,
    program: ConfiguringProgram,
    source: &Source,
    out: &mut Imported,
    missing: &mut Vec<ConfiguringProgram>,
) -> Result<Vec<ForeignFile>> {
    let named = named(a, program);
    if !named.is_empty() {
        let text = |p: &PathBuf| named_file(p).map_err(|e| Fail::io(p.display(), &e).file(p));
        return named.iter().map(|p| Ok(ForeignFile { path: p.display().to_string(), text: text(p)? })).collect();
    }
    let found = foreign_files::read(&*source.host, program);
    for e in &found.unread {
        match e.errno {
            None if source.recorded => missing.push(program),
            _ => out.leave(&ConfiguredBy::Text { text: program.name().into() }, e.object(), e.to_string()),
        }
    }
    missing.dedup();
    Ok(found.files.into_iter().map(|(path, text)| ForeignFile { path, text }).collect())
}

/// No more than one byte beyond the limit is read, so that the reader of the format refuses the file.
fn named_file(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read(program: ConfiguringProgram, files: &[ForeignFile], s: &Snapshot, out: &mut Imported) {
    match program {
        ConfiguringProgram::Irqbalance => files.iter().for_each(|f| import::irqbalance(f, s, out)),
        ConfiguringProgram::Link => import::link(files, s, out),
        ConfiguringProgram::Tuned => import::tuned(files, s, out),
        ConfiguringProgram::Perftune => files.iter().for_each(|f| import::perftune(f, s, out)),
        ConfiguringProgram::NetworkManager => files.iter().for_each(|f| import::network_manager(f, s, out)),
        ConfiguringProgram::Nmstate => files.iter().for_each(|f| import::nmstate(f, s, out)),
    }
}

fn write(a: &ConfigImport, text: &str) -> Result<()> {
    let Some(path) = &a.out else { return out::file(text) };
    let failed = |e: &io::Error| Fail::io(path.display(), e).file(path);
    // The directory of the configuration exists only where a package or `persist` has made it.
    let own = Path::new(DEFAULT_CONFIG).parent().filter(|d| path.parent() == Some(d));
    own.map_or(Ok(()), std::fs::create_dir_all).map_err(|e| failed(&e))?;
    if a.overwrite {
        let mut beside = ReplacementFile::create(path, MODE).map_err(|e| failed(&e))?;
        beside.file.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
        return beside.finish().map_err(|e| failed(&e));
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(MODE).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(exists(path)),
        Err(e) => return Err(failed(&e)),
    };
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|e| failed(&e))
}

/// What was written, and what to do next. Entries that are left out are listed on stderr, and counted here.
fn written(path: &Path, c: &Chosen) -> String {
    let left_out = match c.not_carried.len() {
        0 => String::new(),
        n => format!(", {n} not carried over"),
    };
    let path = path.display().to_string();
    let check = shell::join(["ringwise", "config", "check", &path].map(str::to_string));
    format!("{}: goal {}, {}{left_out}\nNext: {check}\n", visible(&path), c.goal, plural(c.choices.len(), "setting"))
}

fn report(c: &Chosen, notes: &[String], common: &Common) {
    for n in notes {
        out::note(common.quiet, &format!("ringwise: {}", visible(n)));
    }
    let list = |title: String, all: Vec<String>| {
        let text: String = all.iter().map(|l| format!("\n    {}", visible(l))).collect();
        out::note(common.quiet, &format!("ringwise: {title}:{text}"));
    };
    if !c.conflicts.is_empty() {
        let title = format!("sources differ in {}; the file has the first value", plural(c.conflicts.len(), "setting"));
        list(title, c.conflicts.iter().map(ToString::to_string).collect());
    }
    if !c.not_carried.is_empty() {
        list("not carried over".into(), c.not_carried.iter().map(ToString::to_string).collect());
    }
}
