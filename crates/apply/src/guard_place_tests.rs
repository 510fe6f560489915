use std::os::fd::AsRawFd;

use super::*;

/// A state directory, a directory in place of `/run/ringwise`, and a program.
struct Here {
    top: PathBuf,
    state: PathBuf,
    run: PathBuf,
    program: PathBuf,
    tested: TestedProgram,
}

impl Here {
    fn new(name: &str, script: &str) -> Self {
        let top = std::env::temp_dir().join(format!("ringwise-place-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&top);
        fs::create_dir_all(&top).unwrap();
        let top = top.canonicalize().unwrap();
        let (state, run, program) = (top.join("state"), top.join("run"), top.join("program"));
        fs::create_dir(&state).unwrap();
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { top, state, run, program, tested: TestedProgram::default() }
    }

    fn search<'a>(&'a self, program: &'a Path, copies_only: bool) -> Search<'a> {
        let end = Instant::now() + Duration::from_secs(400);
        Search { program, copies_only, dir: &self.state, run: &self.run, transaction: 7, end, tested: &self.tested }
    }

    fn copies(&self) -> Vec<PathBuf> {
        let list = |d: &Path| fs::read_dir(d).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
        [list(&self.state), list(&self.run)].concat()
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}

fn file(place: Result<Place, GuardError>) -> PathBuf {
    match place {
        Ok(Place::File(path)) => path,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_copy_that_can_be_executed_is_taken() {
    let here = Here::new("order", "exit 0");
    assert_eq!(file(here.search(&here.program, true).find()), here.state.join("guard-0007"));
    // Like a state directory on a file system that is mounted noexec.
    let here = Here::new("second", "case $0 in */state/*) exit 126 ;; esac");
    let path = file(here.search(&here.program, true).find());
    assert_eq!((path.parent(), here.copies()), (Some(here.run.as_path()), vec![path.clone()]));
    // A copy of another state directory stays; an old copy of our own is removed.
    let (other, old) = (here.run.join("guard-1-1-0007"), here.state.join("guard-0006"));
    fs::write(&other, "").unwrap();
    fs::write(&old, "").unwrap();
    let again = file(here.search(&here.program, true).find());
    assert_eq!(again, path);
    assert!(other.exists() && !old.exists());
}

#[test]
fn without_such_a_file_it_runs_from_memory_and_the_reason_is_reported() {
    let here = Here::new("memory", "case $0 in */state/* | */run/*) exit 126 ;; esac");
    let place = here.search(&here.program, true).find().unwrap();
    let why = place.only_once().unwrap().to_string();
    assert!(why.contains("state/guard-0007: a test run ended with exit status: 126"), "{why}");
    assert!(why.contains("/run/guard-"), "{why}");
    assert!(place.path("self").starts_with("/proc/self/fd"));
    assert_eq!(here.copies(), Vec::<PathBuf>::new());
    let e = here.search(Path::new("/nonesuch"), true).find().unwrap_err().to_string();
    assert!(e.contains("No such file") && e.contains("nor from memory"), "{e}");
}

#[test]
fn a_program_that_does_not_end_is_not_taken() {
    let here = Here::new("hangs", "case $0 in */state/*) exec sleep 1000 ;; esac");
    let search = Search { end: Instant::now() + Duration::from_secs(2), ..here.search(&here.program, true) };
    // Which of the two places is used when the time is over depends on the machine, but it is never the first.
    match search.find() {
        Ok(Place::File(path)) => assert_eq!(path.parent(), Some(here.run.as_path())),
        Ok(place) => assert!(place.only_once().unwrap().to_string().contains("did not end within"), "{place:?}"),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_program_that_is_installed_runs_from_where_it_is() {
    let program = Path::new("/bin/true");
    let real = program.canonicalize().unwrap();
    let dev = |p: &Path| fs::metadata(p).unwrap().dev();
    if ![dev(Path::new("/")), dev(Path::new("/usr"))].contains(&dev(&real)) {
        let why = format!("{} is on a file system of its own", real.display());
        return ringwise_testkit::skipped("a_program_that_is_installed_runs_from_where_it_is", &why);
    }
    let here = Here::new("installed", "exit 0");
    assert_eq!(file(here.search(program, false).find()), real);
    assert_eq!(here.copies(), Vec::<PathBuf>::new());
    assert_eq!(file(here.search(program, true).find()), here.state.join("guard-0007"));
}

#[test]
fn a_program_is_tested_once_until_it_changes_or_is_forgotten() {
    let here = Here::new("once", "echo run >> ${0%/*}/runs");
    let runs = || fs::read_to_string(here.top.join("runs")).unwrap_or_default().lines().count();
    let end = Instant::now() + Duration::from_secs(400);
    let test = |path: &Path| passes(path, &here.tested, end);
    test(&here.program).unwrap();
    test(&here.program).unwrap();
    assert_eq!(runs(), 1);
    // Another path of the same file may not be executable.
    let link = here.top.join("link");
    fs::hard_link(&here.program, &link).unwrap();
    test(&link).unwrap();
    assert_eq!(runs(), 2);
    let longer = fs::read_to_string(&here.program).unwrap() + "# written since\n";
    fs::write(&link, longer).unwrap();
    test(&link).unwrap();
    test(&link).unwrap();
    assert_eq!(runs(), 3);
    here.tested.forget();
    test(&link).unwrap();
    assert_eq!(runs(), 4);
    // A failed run leaves nothing to rely on.
    fs::write(&link, "#!/bin/sh\nexit 1\n").unwrap();
    for _ in 0..2 {
        assert!(matches!(test(&link), Err(FileFault::TestFailed(_))));
    }
}

#[test]
fn a_program_that_does_not_stay_is_copied() {
    let here = Here::new("goes", "exit 0");
    fs::set_permissions(&here.top, fs::Permissions::from_mode(0o777)).unwrap();
    let e = installed(&here.program).unwrap_err().to_string();
    assert!(e.contains("every user can write"), "{e}");
    fs::set_permissions(&here.top, fs::Permissions::from_mode(0o755)).unwrap();
    // Like /proc/self/exe after an upgrade: a link to a deleted file.
    let running = File::open(&here.program).unwrap();
    let link = PathBuf::from(format!("/proc/self/fd/{}", running.as_raw_fd()));
    fs::rename(&here.program, here.top.join("old")).unwrap();
    fs::write(&here.program, "another version").unwrap();
    fs::remove_file(here.top.join("old")).unwrap();
    let e = installed(&link).unwrap_err().to_string();
    assert!(e.contains("replaced or removed since it was started"), "{e}");
}
