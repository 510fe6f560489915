//! `ringwise persist`: the configuration is applied at every boot, and when an interface comes late.

pub(super) mod at_boot;
mod others;
mod place;
mod units;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ringwise_discover::Options;
use ringwise_sys::Request;

use super::transaction::{can_go_on, confirmed, store};
use super::{goals, in_force, wanted};
use crate::args::{Common, PersistArgs};
use crate::boot;
use crate::exit::{Fail, Result, Status};
use crate::{out, source};
use units::Units;

/// Where packages put the program.
const INSTALLED: &str = "/usr/sbin/ringwise";

pub(super) fn run(a: &PersistArgs, common: &Common) -> Result<Status> {
    let state_dir = state_dir(common);
    if a.lived {
        boot::lived(&state_dir).map_err(Fail::error)?;
        return Ok(Status::Ok);
    }
    // Into a directory of one's own no root is needed, but still an answer.
    if a.root.is_none() || !(a.write.yes || a.write.dry_run) {
        can_go_on(&a.write, "persist")?;
    }
    let root = a.root.clone().unwrap_or_else(|| "/".into());
    if a.remove {
        return remove(a, &root, &state_dir, common);
    }
    let config = a.intent.config.clone().unwrap_or_else(|| wanted::DEFAULT.into());
    let config = std::path::absolute(&config).map_err(|e| Fail::error(format!("{}: {e}", config.display())))?;
    if config.to_str().is_none_or(|c| c.contains(['\n', '\r'])) {
        return Err(Fail::usage("the name of the file must be one line of UTF-8"));
    }
    let program = match &a.root {
        Some(_) => None,
        None => Some(std::env::current_exe().map_err(|e| Fail::error(format!("where this program lies: {e}")))?),
    };
    place::check(&root, program.as_deref(), &config, &state_dir)?;
    let program = match &program {
        None => INSTALLED,
        Some(p) => p.to_str().ok_or_else(|| Fail::error(format!("{} is not UTF-8", p.display())))?,
    };
    let there = below(&root, &config);
    let given = says_anything(a);
    let (loaded, write) = match std::fs::read_to_string(&there) {
        Ok(_) if given => {
            let text = format!("{} is there; the flags would not be kept", config.display());
            return Err(Fail::refused(text).next("ringwise persist, with the flags as keys in that file"));
        }
        Ok(_) => (wanted::load(&there)?, None),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let c = if given {
                wanted::of_flags(&goals::settled(&a.intent, &source::live()?, common)?)?
            } else {
                in_force::config(common)?
            };
            let text = header(&config, given) + &ringwise_config::print(&c);
            (c, Some(text))
        }
        Err(e) => return Err(Fail::error(format!("{}: {e}", there.display()))),
    };
    let mut notes = Vec::new();
    if a.root.is_none() {
        // What cannot be bound now cannot be at boot either.
        let source = source::live()?;
        let s = source.snapshot(&Options::all(), common)?;
        let bound = ringwise_config::bind(&loaded, &[], &s.nics).map_err(|w| Fail::error(w.join("\nringwise: ")))?;
        notes = bound.notes;
        notes.extend(others::said(&source, &s, &bound.intent));
    }
    let dir = common.state_dir.as_ref().map(|d| d.display().to_string());
    let units = Units { program, config: config.to_str().unwrap_or_default(), state_dir: dir.as_deref() };
    let mut files: Vec<(PathBuf, String)> = units.files().into_iter().map(|(p, t)| (root.join(p), t)).collect();
    if let Some(text) = write {
        files.insert(0, (there.clone(), text));
    }
    // A masked unit is a link to /dev/null: somebody wants none of it.
    if let Some((path, _)) = files.iter().find(|(p, _)| std::fs::metadata(p).is_ok_and(|m| !m.is_file())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let what = format!("{} is no file, perhaps a masked unit; nothing was written", path.display());
        return Err(Fail::error(what).next(format!("systemctl unmask {name}")));
    }
    for n in &notes {
        out::note(common.quiet, &format!("ringwise: {n}"));
    }
    let list: Vec<String> = files.iter().map(|(p, _)| format!("    {}\n", p.display())).collect();
    let will = format!(
        "{} is applied at every boot and when an interface comes late. Files:\n{}",
        config.display(),
        list.concat()
    );
    if a.write.dry_run {
        out::answer(&will)?;
        return Ok(Status::Ok);
    }
    out::note(common.quiet, will.trim_end());
    let texts = || files.iter().map(|(p, t)| format!("==> {}\n{t}\n", p.display())).collect::<String>();
    if !confirmed(&a.write, "Write them? [y/N/show]", &texts)? {
        return Err(Fail::refused("not confirmed; nothing was touched"));
    }
    place::write_all(&files, put)?;
    enable(&root)?;
    if a.root.is_none() {
        boot::forget(&state_dir).map_err(Fail::error)?;
        reload(common)?;
    }
    out::note(common.quiet, "Kept over a reboot. Undo: ringwise persist --remove");
    Ok(Status::Ok)
}

/// The first place: the others do not survive a reboot.
pub(super) fn state_dir(common: &Common) -> PathBuf {
    store(common).dirs().first().cloned().unwrap_or_default()
}

/// Whether the command line says what is wanted.
fn says_anything(a: &PersistArgs) -> bool {
    let i = &a.intent;
    let cpus = i.cpus.is_some() || i.reserve.is_some() || i.exclude_cpus.is_some();
    let how = i.queues.is_some() || i.smt.is_some() || i.far_node.is_some() || i.latency_queues.is_some();
    i.goal.is_some() || !i.set.is_empty() || cpus || how || i.allow_disruption || i.pair_as_article
}

fn header(config: &Path, given: bool) -> String {
    let from = if given { "the flags given" } else { "what was in force" };
    format!(
        "# Written by ringwise persist from {from}. Keys: ringwise.toml(5); check: ringwise config check {}\n",
        config.display()
    )
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn put(path: &Path, text: &str) -> ringwise_sys::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(|e| ringwise_sys::io_error("mkdir", &dir.display().to_string(), &e))?;
    }
    ringwise_sys::store::write_atomic(path, text.as_bytes())?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
        .map_err(|e| ringwise_sys::io_error("chmod", &path.display().to_string(), &e))
}

/// As `systemctl enable` does it, and without it.
fn enable(root: &Path) -> Result<()> {
    let link = root.join(boot::WANTS);
    let said = |e: std::io::Error| Fail::error(format!("{}: {e}", link.display()));
    if let Some(dir) = link.parent() {
        std::fs::create_dir_all(dir).map_err(said)?;
    }
    match std::os::unix::fs::symlink("/etc/systemd/system/ringwise.service", &link) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(said),
    }
}

/// systemd reads its files anew; udev sees them by itself.
fn reload(common: &Common) -> Result<()> {
    if !Path::new("/run/systemd/system").exists() {
        return Ok(());
    }
    let host = source::live()?.host;
    if let Err(e) = host.kernel(&Request::DaemonReload) {
        out::note(common.quiet, &format!("ringwise: {e}; it holds from the next boot on all the same"));
    }
    Ok(())
}

fn remove(a: &PersistArgs, root: &Path, state_dir: &Path, common: &Common) -> Result<Status> {
    let all = [boot::WANTS, boot::SERVICE, boot::LATE, boot::LIVED, boot::TIMER, boot::RULES];
    let there: Vec<PathBuf> = all.iter().map(|p| root.join(p)).filter(|p| p.symlink_metadata().is_ok()).collect();
    let (others, there): (Vec<PathBuf>, Vec<PathBuf>) = there.into_iter().partition(|p| place::foreign(p));
    for p in &others {
        out::note(common.quiet, &format!("ringwise: {} was not written by ringwise persist: it stays", p.display()));
    }
    if there.is_empty() {
        out::note(common.quiet, "ringwise: nothing is kept over a reboot");
        return Ok(Status::Ok);
    }
    let list: Vec<String> = there.iter().map(|p| format!("    {}\n", p.display())).collect();
    let will = format!("Nothing is applied at boot any more; the configuration stays. Removed:\n{}", list.concat());
    if a.write.dry_run {
        out::answer(&will)?;
        return Ok(Status::Ok);
    }
    out::note(common.quiet, will.trim_end());
    if !confirmed(&a.write, "Remove them? [y/N]", &String::new)? {
        return Err(Fail::refused("not confirmed; nothing was touched"));
    }
    for p in &there {
        std::fs::remove_file(p).map_err(|e| Fail::error(format!("{}: {e}", p.display())))?;
    }
    if a.root.is_none() {
        boot::forget(state_dir).map_err(Fail::error)?;
        reload(common)?;
    }
    Ok(Status::Ok)
}
