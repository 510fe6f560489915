//! The text parsers on the files of the machine that runs the test. Reads only.

use ringwise_kfmt::{cmdline, cpulist, cpumask, interrupts, softnet, sysfs};
use ringwise_testkit::skipped;

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        skipped("parsers on this machine", &format!("{path} cannot be read here"));
    }
    text
}

#[test]
fn masks_and_lists_of_this_kernel_agree() {
    let Some(status) = read("/proc/self/status") else { return };
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    for (mask, list) in [("Cpus_allowed:", "Cpus_allowed_list:"), ("Mems_allowed:", "Mems_allowed_list:")] {
        let (Some(mask), Some(list)) = (field(mask), field(list)) else {
            skipped("masks_and_lists_of_this_kernel_agree", &format!("no {mask} in /proc/self/status"));
            continue;
        };
        let set = cpumask::parse(mask).unwrap();
        assert_eq!(set, cpulist::parse(list).unwrap());
        assert_eq!(cpulist::format(&set), list);
        // The width is the kernel's; four bits a digit.
        let bits = mask.replace(',', "").len() as u32 * 4;
        assert_eq!(cpumask::format(&set, Some(bits)), mask);
    }
}

#[test]
fn interrupts_of_this_kernel() {
    let Some(text) = read("/proc/interrupts") else { return };
    let table = interrupts::parse(text.as_bytes()).unwrap();
    assert_eq!(table.rows.len(), text.lines().count() - 1);
    assert_eq!(table.cpus.len(), text.lines().next().unwrap().split_whitespace().count());
}

#[test]
fn small_files_of_this_kernel() {
    if let Some(text) = read("/proc/net/softnet_stat") {
        assert_eq!(softnet::parse(&text).unwrap().len(), text.lines().count());
    }
    if let Some(text) = read("/proc/cmdline") {
        assert_eq!(cmdline::words(&text).is_empty(), text.trim().is_empty());
    }
    if let Some(text) = read("/sys/devices/system/node/node0/distance") {
        assert_eq!(sysfs::parse_distances(&text).unwrap()[0], 10);
    }
    if let Some(text) = read("/sys/class/net/lo/mtu") {
        assert!(sysfs::parse_u32(&text).unwrap() > 0);
    }
}
