//! Debian packages through a separate apt configuration.
//!
//! The archives are those of the machine's configuration, none is named here: their
//! addresses come from its sources, and only the suites are replaced. Lists and downloads
//! stay in our cache, so the machine's own apt state does not change.

use crate::{cmd, paths, progress};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// One archive of the machine's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Archive {
    uri: String,
    suites: Vec<String>,
    signed_by: Option<String>,
}

/// An apt that only knows the given suites.
pub(crate) struct Apt {
    dir: PathBuf,
    /// Empty: the machine's own.
    machines: Vec<String>,
    /// Names without a machine are packages of the first one.
    is_native: bool,
}

/// The machine's release name, such as `bookworm`.
pub(crate) fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let mut fields = text.lines().filter_map(|l| l.split_once('='));
    fields
        .find(|(k, _)| *k == "VERSION_CODENAME")
        .map(|(_, v)| v.trim_matches('"').to_string())
        .context("/etc/os-release has no VERSION_CODENAME: the lab needs Debian")
}

impl Apt {
    /// `suites` from the archive that has the machine's own release, those that end in
    /// `-security` from the one that has its security suite.
    pub(crate) fn new(name: &str, suites: &[&str]) -> Result<Apt> {
        Self::for_machines(name, suites, &[])
    }

    /// The same for packages of another machine, as an apt on that machine would see them.
    pub(crate) fn for_machine(name: &str, suites: &[&str], machine: &str) -> Result<Apt> {
        Ok(Apt { is_native: true, ..Self::for_machines(name, suites, &[machine])? })
    }

    /// The same for packages of several machines (`amd64`, `arm64`). None: the machine's own.
    pub(crate) fn for_machines(name: &str, suites: &[&str], machines: &[&str]) -> Result<Apt> {
        let dir = paths::cache().join("apt").join(name);
        for sub in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(dir.join(sub))?;
        }
        let release = codename()?;
        let known = configured()?;
        let of = |suite: &str| {
            known
                .iter()
                .find(|a| a.suites.iter().any(|s| s == suite))
                .with_context(|| format!("no configured apt source has the suite {suite}"))
        };
        let (security, plain): (Vec<&str>, Vec<&str>) = suites.iter().partition(|s| s.ends_with("-security"));
        let mut text = String::new();
        for (suites, carrier) in [(plain, ""), (security, "-security")] {
            if suites.is_empty() {
                continue;
            }
            let archive = of(&format!("{release}{carrier}"))?;
            text += &format!("Types: deb\nURIs: {}\nSuites: {}\nComponents: main\n", archive.uri, suites.join(" "));
            if !machines.is_empty() {
                text += &format!("Architectures: {}\n", machines.join(" "));
            }
            if let Some(key) = &archive.signed_by {
                text += &format!("Signed-By: {key}\n");
            }
            text.push('\n');
        }
        fs::write(dir.join("lab.sources"), text)?;
        Ok(Apt { dir, machines: machines.iter().map(|m| m.to_string()).collect(), is_native: false })
    }

    /// The file with the suites, for programs that have their own apt.
    pub(crate) fn sources(&self) -> PathBuf {
        self.dir.join("lab.sources")
    }

    fn command(&self, program: &str) -> Command {
        let mut c = Command::new(program);
        let dir = self.dir.display();
        for option in [
            format!("Dir::Etc::SourceList={dir}/lab.sources"),
            "Dir::Etc::SourceParts=-".into(),
            format!("Dir::State::Lists={dir}/lists"),
            format!("Dir::Cache={dir}"),
            format!("Dir::Cache::Archives={dir}/archives"),
            "APT::Sandbox::User=root".into(),
            "Acquire::Languages=none".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            "Acquire::Retries=2".into(),
            "Acquire::http::Timeout=60".into(),
        ] {
            c.arg("-o").arg(option);
        }
        if let Some(machine) = self.machines.first().filter(|_| self.is_native) {
            c.args(["-o", &format!("APT::Architecture={machine}")]);
        }
        for machine in &self.machines {
            c.args(["-o", &format!("APT::Architectures::={machine}")]);
        }
        if !self.machines.is_empty() {
            // Only its newest suite is used for them, with which a mirror may lag behind. Signatures are still checked.
            c.args(["-o", "Acquire::Check-Valid-Until=false"]);
        }
        c.env("DEBIAN_FRONTEND", "noninteractive");
        c.env("LC_ALL", "C");
        c
    }

    pub(crate) fn update(&self) -> Result<()> {
        cmd::retried("reading the package lists", || {
            cmd::output(self.command("apt-get").args(["-q", "update"])).map(drop)
        })
    }

    /// All package names with this beginning.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let out = cmd::output(self.command("apt-cache").args(["pkgnames", prefix]))?;
        Ok(out.lines().map(str::to_string).collect())
    }

    /// `package` and the libraries that it needs, recursively; the C library is the machine's.
    pub(crate) fn with_libraries(&self, package: &str) -> Result<Vec<String>> {
        let mut c = self.command("apt-cache");
        c.args(["depends", "--recurse", "--important", "--no-pre-depends", package]);
        Ok(libraries(&cmd::output(&mut c)?, package))
    }

    /// Installs into the machine; `target` is a release to prefer, such as backports.
    pub(crate) fn install(&self, target: Option<&str>, packages: &[&str]) -> Result<()> {
        cmd::retried("installing packages", || {
            let mut c = self.command("apt-get");
            c.args(["-q", "-y", "--no-install-recommends"]);
            if let Some(t) = target {
                c.args(["-t", t]);
            }
            c.arg("install").args(packages);
            cmd::output(&mut c).map(drop)
        })
    }

    /// Downloads packages and unpacks them into `root`, installing nothing.
    pub(crate) fn unpack(&self, packages: &[String], root: &Path) -> Result<()> {
        let mut download = self.command("apt-get");
        download.args(["-q", "download"]).args(packages);
        let seen = self.unpack_what(&mut download, &packages.join(" "), root)?;
        if seen < packages.len() {
            bail!("only {seen} of {} were downloaded", packages.join(" "));
        }
        Ok(())
    }

    /// A package of `suite` and all of its dependencies including the C library, as for an empty machine.
    pub(crate) fn unpack_whole(&self, package: &str, suite: &str, root: &Path) -> Result<()> {
        let mut install = self.command("apt-get");
        install.args(["-q", "-y", "--no-install-recommends", "--download-only", "-t", suite]);
        install.args(["-o", "Dir::State::status=/dev/null", "install", package]);
        self.unpack_what(&mut install, package, root).map(drop)
    }

    /// Runs a download, and unpacks every downloaded package. Returns their number. Progress is shown under the first
    /// word of `what`.
    fn unpack_what(&self, download: &mut Command, what: &str, root: &Path) -> Result<usize> {
        let tmp = self.dir.join(format!("fetch-{}", cmd::hash(&[root.as_os_str().as_encoded_bytes()])));
        let _tmp = progress::temporary(&tmp);
        let _ = fs::remove_dir_all(&tmp);
        fs::create_dir_all(tmp.join("partial"))?;
        fs::create_dir_all(root)?;
        let archives = format!("Dir::Cache::Archives={}", tmp.display());
        download.current_dir(&tmp).args(["-o", &archives]);
        cmd::retried(&format!("downloading {what}"), || {
            watched(|| megabytes(&tmp), || cmd::output(download).map(drop))
        })?;
        progress::set("fetching", "unpacking");
        let mut seen = 0;
        for path in fs::read_dir(&tmp)?.flatten().map(|e| e.path()) {
            if path.extension().is_some_and(|e| e == "deb") {
                cmd::output(Command::new("dpkg-deb").arg("-x").arg(path).arg(root))?;
                seen += 1;
            }
        }
        progress::end("fetching");
        Ok(seen)
    }
}

/// Megabytes that were downloaded so far.
fn megabytes(dir: &Path) -> u64 {
    let size = |d: &Path| -> u64 {
        fs::read_dir(d).into_iter().flatten().flatten().filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()
    };
    (size(dir) + size(&dir.join("partial"))) / 1_000_000
}

/// Shows how much was downloaded while `work` runs.
fn watched<T>(come: impl Fn() -> u64 + Sync, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                progress::set("fetching", format!("{} MB", come()));
                std::thread::sleep(Duration::from_millis(300));
            }
            progress::end("fetching");
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    })
}

/// The closure over library packages in the output of `apt-cache depends --recurse`.
fn libraries(depends: &str, package: &str) -> Vec<String> {
    let mut wanted = vec![package.to_string()];
    let mut next = 0;
    while let Some(name) = wanted.get(next).cloned() {
        next += 1;
        let own = depends.lines().skip_while(|l| *l != name).skip(1).take_while(|l| l.starts_with(' '));
        for dep in own.filter_map(|l| l.trim_start_matches([' ', '|']).strip_prefix("Depends: ")) {
            let library = dep.starts_with("lib") || dep.starts_with("zlib");
            let of_libc = dep.starts_with("libc6") || dep.starts_with("libgcc");
            if library && !of_libc && !wanted.iter().any(|w| w == dep) {
                wanted.push(dep.to_string());
            }
        }
    }
    wanted
}

/// The archives in the machine's own sources, in both formats of apt.
fn configured() -> Result<Vec<Archive>> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(dir) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(dir.flatten().map(|e| e.path()));
    }
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        match file.extension().and_then(|e| e.to_str()) {
            Some("sources") => all.extend(stanzas(&text)),
            Some("list") => all.extend(text.lines().filter_map(one_line)),
            _ => {}
        }
    }
    if all.is_empty() {
        bail!("no apt source is configured in /etc/apt");
    }
    Ok(all)
}

fn stanzas(text: &str) -> Vec<Archive> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    let mut all = Vec::new();
    for block in lines.split(|l| l.trim().is_empty()) {
        let field = |name: &str| {
            block
                .iter()
                .filter_map(|l| l.split_once(':'))
                .find(|(k, _)| k.eq_ignore_ascii_case(name))
                .map(|(_, v)| v.trim().to_string())
        };
        let (Some(uris), Some(suites)) = (field("URIs"), field("Suites")) else {
            continue;
        };
        if field("Enabled").is_some_and(|v| v.eq_ignore_ascii_case("no")) {
            continue;
        }
        let suites: Vec<String> = suites.split_whitespace().map(str::to_string).collect();
        all.extend(uris.split_whitespace().map(|uri| Archive {
            uri: uri.to_string(),
            suites: suites.clone(),
            signed_by: field("Signed-By").filter(|s| s.starts_with('/')),
        }));
    }
    all
}

fn one_line(line: &str) -> Option<Archive> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(r) => r.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let uri = words.next()?.to_string();
    let suite = words.next()?.to_string();
    let signed_by = options.split_whitespace().find_map(|o| o.strip_prefix("signed-by=")).map(str::to_string);
    Some(Archive { uri, suites: vec![suite], signed_by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_followed_and_nothing_else() {
        let text = "prog\n  Depends: libc6\n  Depends: helper\n  Depends: liba1\n\
                    helper\n  Depends: libh\nliba1\n |Depends: libb2\n    libother\n  Depends: liba1\n";
        assert_eq!(libraries(text, "prog"), ["prog", "liba1", "libb2"]);
    }

    #[test]
    fn both_source_formats_are_read() {
        let new = stanzas(
            "Types: deb\n# a comment\nURIs: file:/a\nSuites: one two\nSigned-By: /k.gpg\n\n\
             Types: deb\nURIs: file:/b\nSuites: three\nEnabled: no\n",
        );
        assert_eq!(new.len(), 1);
        assert_eq!(new[0].uri, "file:/a");
        assert_eq!(new[0].suites, ["one", "two"]);
        assert_eq!(new[0].signed_by.as_deref(), Some("/k.gpg"));
        let old = one_line("deb [arch=amd64 signed-by=/k.gpg] file:/a one main").unwrap();
        assert_eq!((old.uri.as_str(), old.suites[0].as_str()), ("file:/a", "one"));
        assert_eq!(old.signed_by.as_deref(), Some("/k.gpg"));
        assert_eq!(one_line("# deb file:/a one main"), None);
    }
}
