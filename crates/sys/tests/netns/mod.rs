//! Tests in a private network namespace: this binary runs again under `unshare --net`.

use std::process::Command;

/// Runs `name` again in a private network namespace. Returns true inside; false outside, after it has passed or was skipped.
pub(crate) fn in_private_netns(name: &str) -> bool {
    if std::env::var_os("RINGWISE_IN_NETNS").is_some() {
        return true;
    }
    let me = std::env::current_exe().unwrap();
    if !Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|s| s.success()) {
        ringwise_testkit::skipped(name, "no right to make a network namespace");
        return false;
    }
    let mut inside = Command::new("unshare");
    // A mount namespace with a sysfs of its own: /sys/class/net shows the namespace it was mounted in.
    let script = "mount -t sysfs sysfs /sys && exec \"$0\" \"$@\"";
    inside.args(["--net", "--mount", "sh", "-c", script]).arg(me).args(["--exact", name, "--nocapture"]);
    let out = inside.env("RINGWISE_IN_NETNS", "1").output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
    println!("{text}");
    false
}
