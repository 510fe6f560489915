//! How the allocator uses memory. A service that reads the host now and then needs little between two reads.

/// One arena for all threads: each thread that reads a device would otherwise get one of its own, which stays. Called before the
/// first thread is started.
pub fn one_arena() {
    // SAFETY: two integers; mallopt(3) only changes a limit of the allocator.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns memory that is not in use to the kernel (malloc_trim(3)).
pub fn give_back() {
    // SAFETY: one integer; live allocations are not touched.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
