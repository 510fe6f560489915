//! All integration tests of the crate in one program: it is linked once, and tests of different files run in parallel.

mod as_requested;
mod by_load;
mod cases;
mod commands;
mod edges;
mod expected;
mod goal_knobs;
mod goals;
mod group_cleanup;
mod groups;
mod held_queues;
mod late_ports;
mod manual_changes;
mod moderation;
mod nearby_nodes;
mod programs;
mod properties;
mod rings;
mod same_number;
mod sampled;
mod shares;
mod steering;
mod traffic_classes;
mod unknown_queues;
mod wishes;
mod without_interface;
