//! `ringwise persist`: applies the configuration at every boot, and when an interface appears later.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ringwise_config::Config;
use ringwise_daemon::ServiceState;
use ringwise_discover::Options;
use ringwise_model::{Boot, shell};
use ringwise_persist::{BootMode, BootRun, Class, Error, Installation, Next, Units, conflicts};
use ringwise_render::json::Document;
use ringwise_sys::Request;
use serde::Serialize;
use serde_json::{Value, json};

use super::goals;
use super::transaction::{can_go_on, confirmed, fail, store};
use super::trial;
use crate::args::{ApplyArgs, Common, FollowArg, PersistArgs};
use crate::exit::{Fail, Result, Status};
use crate::{out, source};

/// The path of the program in packages.
pub(super) const INSTALLED: &str = "/usr/sbin/ringwise";

pub(super) fn run(a: &PersistArgs, common: &Common) -> Result<Status> {
    let state_dir = state_dir(common);
    if a.lived {
        ringwise_persist::mark_boot_good(&state_dir)?;
        return Ok(Status::Ok);
    }
    // Writing below a user's own directory needs no root, but the user must still agree.
    if a.root.is_none() || !(a.write.yes || a.write.dry_run) {
        can_go_on(&a.write, "persist")?;
    }
    if a.intent.sample.is_some() {
        return Err(Fail::usage(
            "--sample is for one plan, and no boot samples. Configure what it chose: latency_queues, and a group with its policy",
        )
        .next("ringwise plan --goal mixed --sample"));
    }
    if a.intent.print_config {
        return Err(Fail::usage(
            "--print-config belongs to plan and apply; persist -n lists the files that it would write",
        )
        .next("ringwise plan --print-config"));
    }
    let root = a.root.clone().unwrap_or_else(|| "/".into());
    let installation = Installation::below(&root);
    if a.remove {
        return remove(a, &installation, &state_dir, common);
    }
    let config = a.intent.config.clone().unwrap_or_else(|| ringwise_model::DEFAULT_CONFIG.into());
    let config = std::path::absolute(&config).map_err(|e| Fail::io(config.display(), &e))?;
    if config.to_str().is_none_or(|c| c.contains(['\n', '\r'])) {
        return Err(Fail::usage("--config: the name of the file must be one line of UTF-8"));
    }
    let program = match &a.root {
        Some(_) => None,
        None => Some(
            std::env::current_exe().map_err(|e| Fail::error(format!("cannot find the path of this program: {e}")))?,
        ),
    };
    installation.check(program.as_deref(), &config, &state_dir)?;
    let program = match &program {
        None => INSTALLED,
        Some(p) => p.to_str().ok_or_else(|| Fail::error(format!("{} is not UTF-8", p.display())))?,
    };
    let there = below(&root, &config);
    let given = requests_any_setting(a);
    let (loaded, write) = match std::fs::read_to_string(&there) {
        Ok(_) if given => {
            let text = format!("{} exists already, so the given options would not be stored", config.display());
            return Err(Fail::refused("config_exists", text)
                .file(&config)
                .next("add the settings to that file, then: ringwise persist"));
        }
        Ok(_) => (ringwise_intent::load_config(&there)?, None),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let c = if given {
                ringwise_intent::of_flags(&goals::settled(&a.intent, &source::live()?, common)?.flags(&[]))?
            } else {
                in_effect(common)?
            };
            let text = header(&config, given) + &ringwise_config::print(&c);
            (c, Some(text))
        }
        Err(e) => return Err(Fail::io(there.display(), &e)),
    };
    let follow = a.follow == FollowArg::Observe;
    let mut notes = Vec::new();
    if !follow && !loaded.host.act_on_load.is_empty() {
        notes.push("host.act_on_load has no effect with --follow off".into());
    }
    if a.root.is_none() {
        // Entries that do not match this host now would not match at boot either.
        let source = source::live()?;
        let s = source.snapshot(&Options { follow: loaded.named(), ..Options::all() }, common)?;
        let bound = ringwise_config::bind(&loaded, &[], &s).map_err(ringwise_intent::Error::Unbound)?;
        notes.extend(bound.notes);
        notes.extend(conflicts(source.host.as_ref(), &s, &bound.intent));
    }
    let dir = common.state_dir.as_ref().map(|d| d.display().to_string());
    let units = Units { program, config: config.to_str().unwrap_or_default(), state_dir: dir.as_deref(), follow };
    let mode = if a.daemon { BootMode::Service } else { BootMode::AtBoot };
    let disables_service = installation.disables_service(mode);
    if disables_service {
        notes.push(DISABLES_SERVICE.into());
    }
    let files = installation.files(mode, &units, write.map(|text| (there.clone(), text)))?;
    let as_json = a.format.json(common);
    for n in notes.iter().filter(|_| !as_json) {
        out::note(common.quiet, &format!("ringwise: {n}"));
    }
    let will = will(&config, &files, &installation, mode, &units);
    let mut doc = PersistDocument {
        mode: Some(mode),
        config: Some(config.display().to_string()),
        dry_run: a.write.dry_run,
        changed: installation.differs(mode, &units, &files) || is_skipped(&root, &state_dir),
        files: paths(files.iter().map(|(p, _)| p)),
        removed: paths(installation.overriding(mode, &units).iter().chain(&installation.replaced(mode))),
        notes,
        disables_service,
        ..PersistDocument::default()
    };
    if a.write.dry_run {
        match as_json {
            true => out::json(&doc.read(a, &state_dir, common)?)?,
            false => out::answer(&will)?,
        }
        return Ok(Status::Ok);
    }
    out::note(common.quiet, will.trim_end());
    let texts = || files.iter().map(|(p, t)| format!("==> {}\n{t}\n", p.display())).collect::<String>();
    if !confirmed(&a.write, "Write them? [y/N/show]", &texts)? {
        return Err(Fail::refused("not_confirmed", "not confirmed; nothing was touched"));
    }
    installation.write(mode, &units, &files)?;
    if a.root.is_none() {
        ringwise_persist::forget(&state_dir)?;
        reload(common)?;
    }
    let done = match mode {
        BootMode::AtBoot => "Written: the configuration is applied at every boot. Undo: ringwise persist --remove",
        BootMode::Service => {
            "Written: the service applies and keeps the configuration. Undo: ringwise persist --remove"
        }
    };
    out::note(common.quiet, done);
    if a.root.is_none() {
        let runs = service_runs(common)?;
        out::note(common.quiet, until_boot(mode, runs));
        doc.next = Some(next_command(mode, runs));
    }
    if as_json {
        out::json(&doc.read(a, &state_dir, common)?)?;
    }
    Ok(Status::Ok)
}

/// The command that makes the service manager follow the files before the next boot.
fn next_command(mode: BootMode, runs: bool) -> &'static str {
    match (mode, runs) {
        (BootMode::Service, false) => "systemctl start ringwise-daemon",
        (BootMode::Service, true) => "systemctl restart ringwise-daemon",
        (BootMode::AtBoot, true) => STOP_SERVICE,
        (BootMode::AtBoot, false) => "systemctl start ringwise",
    }
}

const DISABLES_SERVICE: &str = "without --daemon, persist disables ringwise-daemon.service: each boot then applies the configuration once, and \
                                nothing keeps it. To keep the service: ringwise persist --daemon, with its options";

const STOP_SERVICE: &str = "systemctl stop ringwise-daemon";

/// What `ringwise persist -j` prints.
#[derive(Debug, Default, Serialize)]
struct PersistDocument {
    /// `None`: nothing is applied at boot any more.
    mode: Option<BootMode>,
    config: Option<String>,
    dry_run: bool,
    changed: bool,
    files: Vec<String>,
    removed: Vec<String>,
    notes: Vec<String>,
    disables_service: bool,
    next: Option<&'static str>,
}

impl PersistDocument {
    /// The document, with the state after the command. The state of this host does not describe an image.
    fn read(&self, a: &PersistArgs, state_dir: &Path, common: &Common) -> Result<Document<'static, Value>> {
        let root = a.root.as_deref().unwrap_or(Path::new("/"));
        let mut body = json!(self);
        body["root"] = root.display().to_string().into();
        body["boot"] = json!(ringwise_persist::next_boot(root, &of_root(a, state_dir)));
        body["service_runs"] = match a.root {
            Some(_) => Value::Null,
            None => service_runs(common)?.into(),
        };
        Ok(Document { schema: "ringwise.persist", version: 1, body })
    }
}

/// The state directory of the host that the files are for.
fn of_root(a: &PersistArgs, state_dir: &Path) -> PathBuf {
    a.root.as_ref().map_or_else(|| state_dir.to_path_buf(), |root| below(root, state_dir))
}

/// Whether tuning at boot is skipped, which `persist` ends.
fn is_skipped(root: &Path, state_dir: &Path) -> bool {
    root == Path::new("/") && matches!(ringwise_persist::next_boot(root, state_dir), Boot::Skipped { .. })
}

fn paths<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Vec<String> {
    files.map(|p| p.display().to_string()).collect()
}

fn service_runs(common: &Common) -> Result<bool> {
    Ok(ServiceState::running(&store(common), source::live()?.host.as_ref()).is_ok_and(|s| s.is_some()))
}

/// What the files do not change before the next boot. `runs`: the service runs now.
fn until_boot(mode: BootMode, runs: bool) -> &'static str {
    match (mode, runs) {
        (BootMode::Service, false) => "Start it now: systemctl start ringwise-daemon",
        (BootMode::Service, true) => "It runs already: systemctl restart ringwise-daemon",
        (BootMode::AtBoot, true) => SERVICE_RUNS,
        (BootMode::AtBoot, false) => {
            "The unit is inactive until the next boot, unless you start it, which applies the configuration now: \
             systemctl start ringwise"
        }
    }
}

const SERVICE_RUNS: &str = "The service still runs: systemctl stop ringwise-daemon";

/// What `persist` does, for the question before it.
fn will(
    config: &Path,
    files: &[(PathBuf, String)],
    installation: &Installation,
    mode: BootMode,
    units: &Units,
) -> String {
    let list =
        |paths: &mut dyn Iterator<Item = &PathBuf>| paths.map(|p| format!("    {}\n", p.display())).collect::<String>();
    let mut out = config.display().to_string();
    out += match mode {
        BootMode::AtBoot => " is applied at every boot, and when an interface appears later.",
        BootMode::Service => " is applied at every boot by ringwise-daemon.service, which keeps the settings.",
    };
    out += match (mode, installation.has_packaged(units)) {
        (BootMode::AtBoot, true) => " The units of the package are enabled.\n",
        (BootMode::Service, true) => " The unit of the package is enabled.\n",
        (_, false) => "\n",
    };
    if !files.is_empty() {
        out += &format!("Files to write:\n{}", list(&mut files.iter().map(|(p, _)| p)));
    }
    let overriding = installation.overriding(mode, units);
    if !overriding.is_empty() {
        out += &format!("Files to remove, because they override the package's:\n{}", list(&mut overriding.iter()));
    }
    let replaced = installation.replaced(mode);
    if !replaced.is_empty() {
        let by = if mode == BootMode::Service { "the service applies" } else { "these units apply" };
        out += &format!("Files to remove, because {by} the configuration instead:\n{}", list(&mut replaced.iter()));
    }
    out
}

/// The first state directory, because the others do not survive a reboot.
fn state_dir(common: &Common) -> PathBuf {
    store(common).dirs().first().cloned().unwrap_or_default()
}

/// Whether the command line requests any setting.
fn requests_any_setting(a: &PersistArgs) -> bool {
    let i = &a.intent;
    let cpus = i.cpus.is_some() || i.reserve.is_some() || i.exclude_cpus.is_some();
    let how = i.queues.is_some() || i.smt.is_some() || i.far_node.is_some() || i.latency_queues.is_some();
    i.goal.is_some() || !i.set.is_empty() || cpus || how || i.allow_disruption || i.pair_as_article
}

fn header(config: &Path, given: bool) -> String {
    let from = if given { "the given options" } else { "what is in effect" };
    format!(
        "# Written by ringwise persist from {from}. Keys: ringwise.toml(5), or ringwise help ringwise.toml; check: ringwise config check {}\n",
        config.display()
    )
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Makes systemd read its files again; udev notices changes by itself.
fn reload(common: &Common) -> Result<()> {
    if !Path::new("/run/systemd/system").exists() {
        return Ok(());
    }
    let host = source::live()?.host;
    if let Err(e) = host.kernel(&Request::DaemonReload) {
        out::note(common.quiet, &format!("ringwise: {e}; the new units take effect at the next boot"));
    }
    Ok(())
}

fn remove(a: &PersistArgs, installation: &Installation, state_dir: &Path, common: &Common) -> Result<Status> {
    let (there, others) = installation.installed();
    for p in &others {
        out::note(common.quiet, &format!("ringwise: {} was not written by ringwise persist, so it stays", p.display()));
    }
    let mut doc = PersistDocument {
        dry_run: a.write.dry_run,
        changed: !there.is_empty(),
        removed: paths(there.iter()),
        ..PersistDocument::default()
    };
    let as_json = a.format.json(common);
    if there.is_empty() {
        out::note(common.quiet, "ringwise: nothing to remove: no configuration is applied at boot");
        if as_json {
            out::json(&doc.read(a, state_dir, common)?)?;
        }
        return Ok(Status::Ok);
    }
    let list: Vec<String> = there.iter().map(|p| format!("    {}\n", p.display())).collect();
    let will = format!(
        "Nothing will be applied at boot any more; the configuration file stays. Files to remove:\n{}",
        list.concat()
    );
    if a.write.dry_run {
        match as_json {
            true => out::json(&doc.read(a, state_dir, common)?)?,
            false => out::answer(&will)?,
        }
        return Ok(Status::Ok);
    }
    out::note(common.quiet, will.trim_end());
    if !confirmed(&a.write, "Remove them? [y/N]", &String::new)? {
        return Err(Fail::refused("not_confirmed", "not confirmed; nothing was touched"));
    }
    ringwise_persist::remove(&there)?;
    if a.root.is_none() {
        ringwise_persist::forget(state_dir)?;
        reload(common)?;
        if service_runs(common)? {
            out::note(common.quiet, SERVICE_RUNS);
            doc.next = Some(STOP_SERVICE);
        }
    }
    if as_json {
        out::json(&doc.read(a, state_dir, common)?)?;
    }
    Ok(Status::Ok)
}

/// What is in effect; used if no flag requests anything.
fn in_effect(common: &Common) -> Result<Config> {
    let source = source::live()?;
    let store = store(common);
    let options = Options { parts: super::status::needed(&store), ..Options::all() };
    let s = source.snapshot(&options, common)?;
    let v = ringwise_apply::verify_in(&s, &store).map_err(|e| fail(&e))?;
    if let Some(pending) = &v.trial {
        let text = format!("transaction {} is on trial, so its settings may be rolled back", pending.transaction);
        return Err(trial::refusal(pending.transaction, text).next("ringwise confirm, then ringwise persist"));
    }
    let list = ringwise_apply::history(&store, &s.host).map_err(|e| fail(&e))?;
    ringwise_intent::in_effect(&v, &list).ok_or_else(|| {
        Fail::error("no settings of ringwise are in effect, and no option requests any")
            .code("nothing_in_effect")
            .next("ringwise apply, or ringwise persist --goal GOAL")
    })
}

/// For the scripts of packages: status 3 if a setting of ringwise is in effect, on trial or half applied.
pub(super) fn is_anything_in_effect(common: &Common) -> Result<Status> {
    let store = store(common);
    let options = Options { parts: super::status::needed(&store), ..Options::all() };
    let s = source::live()?.snapshot(&options, common)?;
    let v = ringwise_apply::verify_in(&s, &store).map_err(|e| fail(&e))?;
    let nothing = v.settings.is_empty() && v.trial.is_none() && v.unfinished.is_none();
    Ok(if nothing { Status::Ok } else { Status::Findings })
}

/// Checks whether `apply --boot` may begin. `None`: there is nothing to do.
pub(super) fn may_begin(a: &ApplyArgs, common: &Common) -> Result<Option<BootRun>> {
    if let Some(dev) = a.late.as_ref().filter(|dev| dev.contains('/') || dev.is_empty()) {
        return Err(Fail::usage(format!("--late \"{dev}\": expected the name of an interface")));
    }
    if let Some(why) = service_applies(common)? {
        out::note(common.quiet, &format!("ringwise: {why}; nothing was done"));
        return Ok(None);
    }
    if let Some(dev) = &a.late
        && !ringwise_persist::wait_for_link(source::live()?.host.as_ref(), dev)
    {
        out::note(common.quiet, &format!("ringwise: {dev} has no link; nothing was done"));
        return Ok(None);
    }
    let command = shell::join(std::env::args_os().map(|a| a.to_string_lossy().into_owned()));
    Ok(Some(BootRun::begin(&state_dir(common), &command)?))
}

/// Why `apply --boot` does nothing: a boot starts the service, or it runs already.
fn service_applies(common: &Common) -> Result<Option<String>> {
    if ringwise_persist::service_is_enabled(Path::new("/")) {
        return Ok(Some("ringwise-daemon.service applies the configuration".into()));
    }
    // A state that cannot be read is of no service that runs properly.
    let service = ServiceState::running(&store(common), source::live()?.host.as_ref()).ok().flatten();
    Ok(service.map(|s| format!("the service applies the configuration (process {})", s.process.pid)))
}

impl From<Error> for Fail {
    fn from(e: Error) -> Self {
        let status = match e.class() {
            Class::Failed => Status::Error,
            Class::Refused => Status::Refused,
            Class::Skipped => Status::Findings,
        };
        let fail =
            Fail { next: e.next().map(next), ..Fail::new(status, e.to_string()) }.code(e.code()).errno(e.errno());
        match e.file() {
            Some(file) => fail.file(file),
            None => fail,
        }
    }
}

/// The next command, or what to do.
fn next(n: Next) -> String {
    match n {
        Next::Install(program) => {
            format!("install -m 755 {} /usr/local/sbin/ && /usr/local/sbin/ringwise persist", program.display())
        }
        Next::MoveConfig => "ringwise persist --config FILE, with a file below /etc".into(),
        Next::Own(path) => {
            format!("chown root: {0} && chmod go-w {0}, and the same for every directory above it", path.display())
        }
        Next::MoveAway(path) => format!("mv {0} {0}.old, if it is not needed", path.display()),
        Next::Unmask(path) => {
            format!("systemctl unmask {}", path.file_name().unwrap_or_default().to_string_lossy())
        }
        Next::Image => "if /etc is part of an image: ringwise persist --root DIR, when the image is built".into(),
        Next::OwnInit { program, config } => {
            let p = program.display();
            format!(
                "let the init system run `{p} apply --config {} --yes --boot` at the end of the boot, and five minutes later or \
                 at shutdown `{p} persist --lived`; or prepare an image: ringwise persist --root DIR",
                config.display()
            )
        }
        Next::ReadHistory => {
            "ringwise history, and read the log of that boot; then repeat your command (ringwise persist, or ringwise persist --daemon), \
             so that the next boot applies again"
                .into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_command_until_the_next_boot() {
        let text = until_boot(BootMode::AtBoot, false);
        assert!(text.contains("inactive until the next boot") && text.ends_with("systemctl start ringwise"), "{text}");
        assert!(until_boot(BootMode::AtBoot, true).ends_with("systemctl stop ringwise-daemon"));
        assert!(until_boot(BootMode::Service, false).ends_with("systemctl start ringwise-daemon"));
        assert!(until_boot(BootMode::Service, true).ends_with("systemctl restart ringwise-daemon"));
    }
}
