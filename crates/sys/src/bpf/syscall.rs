//! bpf(2), and maps whose keys are numbers. Layout of the arguments: `union bpf_attr` in include/uapi/linux/bpf.h.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::refusal;
use crate::call::own;
use crate::host::{Error, Result};

const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP_ELEM: libc::c_long = 1;
const MAP_UPDATE_ELEM: libc::c_long = 2;
pub(super) const PROG_LOAD: libc::c_long = 5;
/// Highest number of CPUs for which Linux can be built, on any architecture (`NR_CPUS`).
const MOST_CPUS: usize = crate::isolation::MAX_CPU as usize + 1;
/// No count has this byte in all its places: it shows which bytes the kernel has written.
const UNTOUCHED: u8 = 0xa5;

/// Name of a map or program as `bpftool` lists it, at most 15 bytes.
pub(super) type Name = [u8; 16];

pub(super) fn name(text: &str) -> Name {
    let mut name = [0; 16];
    for (to, from) in name[..15].iter_mut().zip(text.bytes()) {
        *to = from;
    }
    name
}

/// # Safety
/// `T` must be the part of `union bpf_attr` that belongs to the command, and its pointers must be valid for what the kernel
/// reads and writes through them.
pub(super) unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: pointer and size describe `attributes`, which the kernel only reads; the caller vouches for its pointers.
    let rc = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>() as libc::c_uint)
    };
    crate::call::check(rc as libc::c_int)
}

/// The error of a call, with the advice for its errno.
pub(super) fn failed(what: &str, call: &str, error: &io::Error) -> Error {
    let errno = error.raw_os_error().unwrap_or(0);
    let words = match refusal::advice(errno) {
        Some(advice) => format!("{call}: {advice}"),
        None => call.to_string(),
    };
    Error { words: Some(words), ..Error::errno(what, errno) }
}

/// Kind of a map with a fixed number of elements, all of which exist from the beginning and are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum MapKind {
    /// `BPF_MAP_TYPE_ARRAY`.
    Array = 2,
    /// `BPF_MAP_TYPE_PERCPU_ARRAY`: each CPU has a value of its own for each element.
    PerCpuArray = 6,
}

#[repr(C)]
struct Create {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    elements: u32,
    flags: u32,
    inner_map: u32,
    node: u32,
    name: Name,
}

#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// For the arguments. The compiler learns that the kernel may use the memory behind it, which an address alone would not say.
pub(super) fn address<T: ?Sized>(of: *const T) -> u64 {
    of.cast::<()>().expose_provenance() as u64
}

/// A map with elements `0..elements`. `N`: number of words of type `W` in a value.
#[derive(Debug)]
pub(crate) struct Map<W, const N: usize> {
    what: String,
    fd: OwnedFd,
    /// Values of one element, one for each possible CPU; longer than the kernel's longest answer.
    answer: Vec<[W; N]>,
    /// How many values the kernel writes.
    values: usize,
}

/// A plain integer.
pub(crate) trait Word: Copy + Default {}
impl Word for u32 {}
impl Word for u64 {}

impl<W: Word, const N: usize> Map<W, N> {
    /// Creates a map; `what` begins the text of errors. Values of a per-CPU array must be of 64-bit words, because the kernel
    /// rounds their size up.
    ///
    /// Errors: EPERM: no CAP_BPF, or (before 5.11) too little RLIMIT_MEMLOCK; ENOMEM; E2BIG; ENOSYS.
    pub(crate) fn create(what: &str, kind: MapKind, elements: u32, map_name: &str) -> Result<Self> {
        assert!(kind == MapKind::Array || size_of::<W>() == 8, "the kernel would write more than the answer holds");
        let attributes = Create {
            kind: kind as u32,
            key_bytes: size_of::<u32>() as u32,
            value_bytes: size_of::<[W; N]>() as u32,
            elements,
            flags: 0,
            inner_map: 0,
            node: 0,
            name: name(map_name),
        };
        // SAFETY: the part of the union that belongs to the command; it has no pointers.
        let fd = unsafe { bpf(MAP_CREATE, &attributes) }.and_then(own);
        let fd = fd.map_err(|e| failed(what, "BPF_MAP_CREATE", &e))?;
        let room = if kind == MapKind::Array { 1 } else { MOST_CPUS };
        let mut map = Self { what: what.into(), fd, answer: vec![[W::default(); N]; room], values: room };
        if kind == MapKind::PerCpuArray {
            map.values = map.count_values()?;
        }
        Ok(map)
    }

    /// The descriptor, for [`Assembler::load_map`](super::Assembler::load_map).
    pub(crate) fn descriptor(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// How many values an element has: one for each possible CPU of this machine. The kernel itself is the source, because a
    /// container may show other files in `/sys/devices/system/cpu` than the kernel has.
    fn count_values(&mut self) -> Result<usize> {
        // SAFETY: `answer` is a live array of integers, of which every byte may have any value.
        unsafe { std::ptr::write_bytes(self.answer.as_mut_ptr(), UNTOUCHED, self.answer.len()) };
        self.look_up(0)?;
        // SAFETY: as above; the array is fully initialised.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.answer.as_ptr().cast::<u8>(), size_of_val(&*self.answer)) };
        let untouched = bytes.iter().rev().take_while(|b| **b == UNTOUCHED).count();
        let written = (bytes.len() - untouched).div_ceil(size_of::<[W; N]>());
        self.answer.truncate(written.max(1));
        self.answer.shrink_to_fit();
        Ok(self.answer.len())
    }

    /// The kernel writes the values of an element to `answer`.
    fn look_up(&mut self, key: u32) -> Result<()> {
        let attributes = Element {
            map: self.fd.as_raw_fd() as u32,
            padding: 0,
            key: address(&raw const key),
            value: address(self.answer.as_mut_ptr()),
            flags: 0,
        };
        // SAFETY: the part of the union that belongs to the command; `key` lives, and `answer` has room for a value of each
        // possible CPU, or for the only one: the size was found by `count_values`, in an array for as many as Linux can have.
        let done = unsafe { bpf(MAP_LOOKUP_ELEM, &attributes) };
        done.map(|_| ()).map_err(|e| failed(&self.what, "BPF_MAP_LOOKUP_ELEM", &e))
    }

    /// The values of an element, one for each possible CPU, or the only one.
    pub(crate) fn read(&mut self, key: u32) -> Result<&[[W; N]]> {
        self.look_up(key)?;
        Ok(&self.answer[..self.values])
    }
}

impl<const N: usize> Map<u32, N> {
    /// Replaces the value of an element of an array.
    pub(crate) fn write(&self, key: u32, value: &[u32; N]) -> Result<()> {
        let attributes = Element {
            map: self.fd.as_raw_fd() as u32,
            padding: 0,
            key: address(&raw const key),
            value: address(value),
            flags: 0,
        };
        // SAFETY: the part of the union that belongs to the command; `key` and `value` live. Only arrays have values of 32-bit
        // words (`create`), so the kernel reads one value.
        let done = unsafe { bpf(MAP_UPDATE_ELEM, &attributes) };
        done.map(|_| ()).map_err(|e| failed(&self.what, "BPF_MAP_UPDATE_ELEM", &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_a_zero() {
        assert_eq!(&name("rw_entries"), b"rw_entries\0\0\0\0\0\0");
        assert_eq!(&name("a_name_that_is_too_long"), b"a_name_that_is_\0");
    }

    #[test]
    fn the_arguments_have_the_layout_of_the_kernel() {
        assert_eq!((size_of::<Create>(), std::mem::offset_of!(Create, name)), (44, 28));
        assert_eq!((size_of::<Element>(), std::mem::offset_of!(Element, key)), (32, 8));
    }

    #[test]
    fn a_refused_call_has_its_errno_and_advice() {
        let e = failed("count", "BPF_MAP_CREATE", &io::Error::from_raw_os_error(libc::ENOSYS));
        let words =
            "ENOSYS (Function not implemented): BPF_MAP_CREATE: this kernel was built without CONFIG_BPF_SYSCALL";
        assert_eq!((e.errno, e.reason().as_str()), (Some(libc::ENOSYS), words));
    }
}
