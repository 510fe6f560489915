//! What makes the static program smaller: relative relocations packed (130 KB; it may lie anywhere in memory), and in a
//! release, where a panic aborts, no tables to unwind by (900 KB).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=no-unwind.ld");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    if !var("CARGO_CFG_TARGET_FEATURE").split(',').any(|f| f == "crt-static") {
        return;
    }
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    if var("PROFILE") == "release" {
        // rustc's own lld cannot tell one file's tables from another's.
        println!("cargo:rustc-link-arg-bins=-fuse-ld=bfd");
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}/no-unwind.ld", var("CARGO_MANIFEST_DIR"));
    }
}
