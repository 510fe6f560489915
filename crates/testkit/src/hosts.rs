//! The recorded and generated hosts of `fixtures/hosts`, for tests that go through all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringwise_sys::{Captured, Host};

/// The folder that has a folder for each host.
pub fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts")
}

/// The archive of one host: a capture, or the files of a tree.
///
/// # Panics
/// When the folder has neither.
pub fn archive(name: &str) -> PathBuf {
    let dir = dir().join(name);
    let file = ["capture.tar.gz", "tree.tar.gz"].map(|f| dir.join(f)).into_iter().find(|f| f.is_file());
    file.unwrap_or_else(|| panic!("{}: no archive", dir.display()))
}

/// One host, to be read as it was.
///
/// # Panics
/// When its archive cannot be read.
pub fn open(name: &str) -> Arc<dyn Host> {
    let file = archive(name);
    Arc::new(Captured::open(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display())))
}

/// Makes a test of each host, which calls the given function with the name of its folder, and a test that compares the
/// list with the folders. `LISTED` is the list of names.
#[macro_export]
macro_rules! each_host {
    ($judge:ident) => {
        $crate::each_host! { $judge:
            arm64_hns3 "arm64-hns3",
            article48 "article48",
            ena_guest "ena-guest",
            epyc_nps1 "epyc-nps1",
            epyc_nps4 "epyc-nps4",
            gve_guest "gve-guest",
            interleaved "interleaved",
            lab_big64_6_12 "lab-big64-6.12",
            lab_interleaved_6_12 "lab-interleaved-6.12",
            lab_isolated_6_12 "lab-isolated-6.12",
            lab_router16_5_10 "lab-router16-5.10",
            lab_router16_6_1 "lab-router16-6.1",
            lab_router16_6_12 "lab-router16-6.12",
            lab_router16_6_18 "lab-router16-6.18",
            lab_router16_newest "lab-router16-newest",
            lab_router3_6_12 "lab-router3-6.12",
            lab_small2_6_12 "lab-small2-6.12",
            mlx5 "mlx5",
            netvsc "netvsc",
            packed_by_others "packed-by-others",
            virtio_iavf "virtio-iavf",
        }
    };
    ($judge:ident: $($test:ident $folder:literal,)*) => {
        const LISTED: &[&str] = &[$($folder),*];

        $(#[test] fn $test() { $judge($folder); })*

        #[test]
        fn every_folder_has_a_test() {
            let folders = $crate::golden::folders(&$crate::hosts::dir());
            assert_eq!(folders, LISTED, "folders of fixtures/hosts and lines of each_host!");
        }
    };
}
