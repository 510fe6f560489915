//! The lab's small programs for guests: `lab/tools/NAME.c`, linked statically, kept in the cache.

use crate::package::{Arch, LINKER};
use crate::{cmd, paths};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Serializes building, because two guests that boot at the same time need the same programs.
static BUILDING: Mutex<()> = Mutex::new(());

/// Builds missing programs, and copies all programs into `share`.
pub(crate) fn install(share: &Path, arch: Arch) -> Result<()> {
    let dir = paths::lab().join("tools");
    for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
        let source = entry?.path();
        if source.extension().is_some_and(|x| x == "c") {
            let name = source.file_stem().context("a source has a name")?;
            let to = share.join(name);
            fs::copy(build(&source, &paths::cache().join("tools"), arch)?, &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

fn build(source: &Path, dir: &Path, arch: Arch) -> Result<PathBuf> {
    let name = source.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    fs::create_dir_all(dir)?;
    let (compiler, machine) = match arch {
        Arch::Amd64 => ("gcc", ""),
        Arch::Arm64 => (LINKER, "-arm64"),
    };
    let program = dir.join(format!("{name}-{}{machine}", cmd::hash(&[&fs::read(source)?])));
    if program.is_file() {
        return Ok(program);
    }
    // Another lab, in another process, may build the same program.
    let tmp = dir.join(format!("{name}-{}{machine}.tmp", std::process::id()));
    let mut cc = Command::new(cmd::need(compiler)?);
    cc.args(["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&tmp).arg(source);
    cmd::output(&mut cc).with_context(|| format!("building {}", source.display()))?;
    fs::rename(&tmp, &program).with_context(|| program.display().to_string())?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_that_boot_at_once_with_an_empty_cache_get_their_programs() {
        let dir = std::env::temp_dir().join(format!("xtask-tools-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let source = dir.join("nothing.c");
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let all: Vec<_> = std::thread::scope(|s| {
            let threads: Vec<_> = (0..4).map(|_| s.spawn(|| build(&source, &dir.join("cache"), Arch::Amd64))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        for program in all {
            assert!(Command::new(program.unwrap()).status().unwrap().success());
        }
        fs::remove_dir_all(&dir).unwrap();
    }

    /// Scenarios kill `ringwise` in this way; here a shell writes the records.
    #[test]
    fn killat_kills_at_the_record() {
        const SHELL: &str = r#"exec 3>>"$0"
            for n in 1 2; do printf '{"record":"step"}\n' >&3; printf '{"record":"done"}\n' >&3; done; exit 7"#;
        let dir = std::env::temp_dir().join(format!("xtask-killat-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let killat = build(&paths::lab().join("tools/killat.c"), &dir.join("cache"), Arch::Amd64).unwrap();
        let run = |words: &[&str], file: &str| {
            let file = dir.join(file);
            let _ = fs::remove_file(&file);
            let mut c = Command::new(&killat);
            let status = c.args(words).args(["tx-", "sh", "-c", SHELL]).arg(&file).status().unwrap();
            (status.code(), fs::read_to_string(&file).unwrap_or_default().lines().count())
        };
        assert_eq!(run(&["step:1"], "tx-1"), (Some(137), 1));
        assert_eq!(run(&["done:2"], "tx-1"), (Some(137), 4));
        assert_eq!(run(&["-b", "done:2"], "tx-1"), (Some(137), 3));
        // A record that is never written, and a file with another name.
        assert_eq!(run(&["step:3"], "tx-1"), (Some(7), 4));
        assert_eq!(run(&["step:1"], "other"), (Some(7), 4));
        fs::remove_dir_all(&dir).unwrap();
    }
}
