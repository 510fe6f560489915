//! What a plan for a server prints: CPUs for its program, and why the number of queues stays.

use crate::unread_facts::ringwise;

const TWO_SOCKETS: &str = "epyc-nps1/tree.tar.gz";

/// The page as in a pipe, where lines are not folded.
fn plan(file: &str, args: &[&str]) -> String {
    let a = ringwise(file, &[&["plan"], args].concat());
    assert_eq!(a.status, Some(0), "{}", a.err);
    a.out
}

#[test]
fn interrupts_that_may_move_to_reserved_cpus_are_reported() {
    let page = plan(TWO_SOCKETS, &["eth1", "--goal", "rpc", "--reserve", "72-79,200-207"]);
    let text = "CPUs 72-79,200-207 are kept free of the queues of this plan: start programs there that must not share CPUs with \
                interrupts (CPUAffinity=72-79,200-207). Interrupts of eth0 (affinity 0-255) may still move there, because the plan does \
                not cover them: plan all interfaces together.\n";
    assert!(page.contains(text), "{page}");
    let page = plan(TWO_SOCKETS, &["--goal", "rpc", "--reserve", "72-79,200-207"]);
    assert!(page.contains("CPUs 72-79,200-207 are kept free of queues: start"), "{page}");
}

#[test]
fn cpus_on_another_node_than_the_interface_name_their_node() {
    let page = plan(TWO_SOCKETS, &["eth1", "--goal", "rpc", "--reserve", "64-127,192-255"]);
    assert!(page.contains("the usable CPUs of node 0, because no CPU of eth1's node may be used, except"), "{page}");
}

#[test]
fn a_drop_in_for_a_part_of_the_socket_names_its_size() {
    let part = "one of several nodes of the socket";
    let comment = "      # (one of several nodes of the socket, 32 of 256 CPUs; for all of\n      # them: their CPUs, NUMAPolicy=local, no NUMAMask=):\n      CPUAffinity=80-95,208-223\n";
    let page = plan("epyc-nps4/tree.tar.gz", &["eth0", "--goal", "rpc"]);
    assert!(comment.contains(part) && page.contains(comment), "{page}");
    assert!(!plan(TWO_SOCKETS, &["eth1", "--goal", "rpc"]).contains(part));
}

#[test]
fn the_module_of_rdma_is_named() {
    let page = plan("mlx5/tree.tar.gz", &["--goal", "rpc", "--allow-disruption"]);
    let why = "their number cannot be changed: in use by RDMA device mlx5_0 (if you do not use RDMA, unload its module first: mlx5_ib)";
    assert!(page.contains(why), "{page}");
    // 2 of 63 queues instead of 1 are 3 % instead of 2 %.
    assert!(page.contains("busiest CPU takes 2 of 63 queues of enp65s0f0np0 instead of 1: "), "{page}");
}

#[test]
fn a_number_of_queues_that_is_not_possible_names_its_option() {
    let page = plan(TWO_SOCKETS, &["eth1", "--queues", "4000", "--allow-disruption"]);
    let line = page.lines().find(|l| l.starts_with("x eth1 channels: ")).unwrap();
    assert!(line.ends_with("not in this capture (configured by --queues 4000)"), "{line}");
}
