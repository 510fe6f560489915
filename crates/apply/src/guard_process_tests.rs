use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};

use ringwise_sys::local;

use super::*;
use ringwise_testkit::dir::Dir;

const LONG: Duration = Duration::from_secs(120);

#[test]
fn its_door_is_for_its_own_user_alone() {
    let dir = Dir::new();
    let door = GuardSocket::open(&dir.0, 7).unwrap();
    let path = dir.0.join("guard-0007.sock");
    assert_eq!(door.name, path.to_str().unwrap());
    let m = fs::symlink_metadata(&path).unwrap();
    assert_eq!((m.file_type().is_socket(), m.mode() & 0o777), (true, 0o600));
    let _ours = local::connect(&door.name, None).unwrap();
    assert!(is_ours(&accept(&door.listener, &is_ours, None, Instant::now() + LONG).unwrap()));
    drop(door);
    assert!(!path.exists());
    // If no file can be created, the name is abstract and cannot be guessed.
    let door = GuardSocket::open(&dir.0.join("none"), 7).unwrap();
    assert!(door.name.starts_with("@ringwise-guard-") && door.name.len() == 48, "{}", door.name);
    let _ours = local::connect(&door.name, None).unwrap();
    accept(&door.listener, &is_ours, None, Instant::now() + LONG).unwrap();
}

/// The worst case is an abstract name that other users have found: the queue is full before the guard connects, and they keep
/// connecting. The test identifies each connection by a byte, because all of them are of the same user.
#[test]
fn a_flood_of_strangers_does_not_keep_the_guard_away() {
    let name = format!("@ringwise-flood-{}", std::process::id());
    let listener = local::listen(&name).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut waiting = 0;
    while local::connect(&name, None).is_ok() {
        waiting += 1;
    }
    assert!(waiting > 100, "{waiting}");
    let over = AtomicBool::new(false);
    let says = |s: &UnixStream| {
        s.set_read_timeout(Some(LONG)).unwrap();
        matches!((&mut &*s).read(&mut [0]), Ok(1))
    };
    std::thread::scope(|s| {
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = local::connect(&name, None);
            }
        });
        let guard = s.spawn(|| local::connect(&name, Some(LONG)).and_then(|mut s| s.write_all(b"g").map(|()| s)));
        // Less than 10 ms for each connection that was there before.
        let within = (EACH * waiting / 2).max(Duration::from_secs(5));
        let accepted = accept(&listener, &says, None, Instant::now() + within);
        over.store(true, Ordering::Relaxed);
        drop(listener);
        let guard = guard.join().unwrap();
        accepted.unwrap();
        guard.unwrap();
    });
}

/// The program has become unusable since its test run: it is tested again, and nothing relies on the old result.
#[test]
fn a_program_that_no_longer_starts_is_tested_again() {
    let dir = Dir::new();
    let program = Path::new("/bin/false").canonicalize().unwrap();
    let process = Process { program: program.clone(), run: dir.0.join("run"), ..Process::default() };
    process.tested.pretend(&program);
    let refused = process.arm_for_tables(&dir.0).err().expect("no guard runs");
    assert!(matches!(refused, GuardError::Ended { .. } | GuardError::BothWays { .. }), "{refused}");
    assert!(!process.tested.is_set());
    let left: Vec<_> = fs::read_dir(&dir.0).unwrap().flatten().map(|e| e.path()).filter(|p| p.is_file()).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}
