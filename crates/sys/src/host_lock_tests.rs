use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn prefix(what: &str) -> String {
    format!("ringwise-test-{what}-{}", std::process::id())
}

fn taken(a: Attempt) -> (Option<OwnedFd>, Vec<ForeignLockName>) {
    match a {
        Attempt::Taken { socket, strangers } => (socket, strangers),
        Attempt::Held { .. } => panic!("{a:?}"),
    }
}

#[test]
fn one_at_a_time_and_the_holder_is_known() {
    let p = prefix("one");
    let (first, strangers) = taken(take(&p).unwrap());
    assert!(strangers.is_empty());
    let Attempt::Held { name, by } = take(&p).unwrap() else { panic!("two at once") };
    assert_eq!((name, by), (format!("@{p}-0"), Peer { pid: Some(std::process::id()), uid: euid() }));
    // A copy holds the lock as well, so the lock is held while it is passed on.
    let copy = first.as_ref().unwrap().try_clone().unwrap();
    drop(first);
    assert!(matches!(take(&p).unwrap(), Attempt::Held { .. }));
    drop(copy);
    taken(take(&p).unwrap());
}

#[test]
fn strangers_are_passed_over_and_named() {
    let (p, uid) = (prefix("strangers"), euid());
    let name = |n: u32| format!("@{p}-{n}");
    let nobody_counts = |_: u32| false;
    let in_the_way: Vec<UnixListener> = (0..2).map(|n| local::listen(&name(n)).unwrap()).collect();
    let (mine, strangers) = taken(take_among(&p, &nobody_counts).unwrap());
    let stranger = |n: u32| ForeignLockName { name: name(n), uid: Ok(uid) };
    assert_eq!(strangers, [stranger(0), stranger(1)]);
    // The other user releases the first name: the holder of a later name is still found.
    drop(in_the_way);
    let Attempt::Held { name: held, .. } = take(&p).unwrap() else { panic!("two at once") };
    assert_eq!(held, name(2));
    drop(mine);
    let all: Vec<UnixListener> = (0..NAMES).map(|n| local::listen(&name(n)).unwrap()).collect();
    let (none, strangers) = taken(take_among(&p, &nobody_counts).unwrap());
    assert_eq!((none.is_none(), strangers.len()), (true, NAMES as usize));
    drop(all);
}

#[test]
fn a_name_that_is_bound_and_silent_is_passed_over() {
    let p = prefix("silent");
    let _bound: Vec<OwnedFd> = (0..NAMES - 1).map(|n| local::bound(&format!("@{p}-{n}"))).collect();
    let (mine, strangers) = taken(take(&p).unwrap());
    assert!(mine.is_some() && strangers.is_empty(), "{strangers:?}");
    assert!(matches!(take(&p).unwrap(), Attempt::Held { name, .. } if name == format!("@{p}-7")));
}

#[test]
fn of_many_that_begin_at_once_never_two_hold_it() {
    let (p, inside, got) = (prefix("race"), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..300 {
                    if let Attempt::Taken { socket, .. } = take(&p).unwrap() {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                        got.fetch_add(1, Ordering::Relaxed);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(socket);
                    }
                }
            });
        }
    });
    assert!(got.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_full_queue_does_not_hide_its_owner() {
    let p = prefix("full");
    let (mine, _) = taken(take(&p).unwrap());
    while local::connect(&format!("@{p}-0"), None).is_ok() {}
    match take(&p).unwrap() {
        Attempt::Held { by, .. } => assert_eq!(by, Peer { pid: None, uid: euid() }),
        Attempt::Taken { strangers, .. } => {
            // Without unix_diag the user is unknown, which is reported.
            assert!(owner_by_diag(&format!("@{p}-0")).is_err());
            assert!(matches!(&strangers[..], [ForeignLockName { uid: Err(_), .. }]), "{strangers:?}");
        }
    }
    drop(mine);
}

#[test]
fn another_user_cannot_hold_it_against_us() {
    let p = prefix("user");
    if euid() != 0 {
        return ringwise_testkit::skipped(
            "another_user_cannot_hold_it_against_us",
            "needs root to become another user",
        );
    }
    const NOBODY: u32 = 65534;
    let their = std::thread::scope(|s| {
        let other = || {
            // The system call affects this thread only; the wrapper in libc would change all threads.
            // SAFETY: integer arguments.
            let rc = unsafe { libc::syscall(libc::SYS_setresuid, u32::MAX, NOBODY, u32::MAX) };
            assert_eq!(rc, 0, "{}", io::Error::last_os_error());
            local::listen(&format!("@{p}-0")).unwrap()
        };
        s.spawn(other).join().unwrap()
    });
    let (mine, strangers) = taken(take(&p).unwrap());
    assert!(mine.is_some());
    assert_eq!(strangers, [ForeignLockName { name: format!("@{p}-0"), uid: Ok(NOBODY) }]);
    // Also if they have filled the queue themselves.
    while local::connect(&format!("@{p}-0"), None).is_ok() {}
    drop(mine);
    let (mine, strangers) = taken(take(&p).unwrap());
    assert!(mine.is_some() && strangers.len() == 1, "{strangers:?}");
    drop(their);
}
