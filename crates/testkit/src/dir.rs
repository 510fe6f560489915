//! Directories that are removed with the test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty directory, by its absolute path; it is removed with its contents when the value is dropped.
pub struct Dir(pub PathBuf);

impl Dir {
    /// In memory if possible, because tests check the order of writes and not the disk.
    #[allow(clippy::new_without_default, reason = "it makes something")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        Self::at(base.join(format!("ringwise-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))))
    }

    /// On disk, under a name that a developer can find.
    pub fn named(name: &str) -> Self {
        Self::at(std::env::temp_dir().join(format!("ringwise-{name}-{}", std::process::id())))
    }

    fn at(dir: PathBuf) -> Self {
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
