//! Programs: loading with the words of the verifier, and attaching to a socket.

use std::os::fd::{AsRawFd, OwnedFd};

use super::instruction::Instruction;
use super::syscall::{Name, PROG_LOAD, address, bpf, failed, name};
use crate::call::own;
use crate::host::{Error, Result};
use crate::packet_socket;

/// `BPF_PROG_TYPE_SOCKET_FILTER`.
const SOCKET_FILTER: u32 = 1;
/// None of the helper functions in use is reserved for programs under the GPL.
const LICENSE: &[u8] = b"MIT\0";
const LOG_BYTES: usize = 64 << 10;

#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    program: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: Name,
}

/// A program that the kernel did not load.
#[derive(Debug)]
pub(crate) struct LoadError {
    /// Names the errno, and the last line of the verifier's log.
    pub(crate) error: Error,
    /// Whether the verifier has read the program and found a fault in it.
    pub(crate) rejected: bool,
}

/// A loaded program.
#[derive(Debug)]
pub(crate) struct BpfProgram {
    what: String,
    fd: OwnedFd,
}

impl BpfProgram {
    /// Loads a socket filter; `what` begins the text of errors.
    ///
    /// Errors: EACCES and EINVAL: the verifier rejected it, and its words are in the error; EPERM: no CAP_BPF, or (before 5.11)
    /// too little RLIMIT_MEMLOCK; ENOSYS.
    pub(crate) fn load(
        what: &str,
        program: &[Instruction],
        program_name: &str,
    ) -> std::result::Result<Self, LoadError> {
        let attempt = |log: Option<&mut [u8]>| {
            let mut attributes = Load {
                kind: SOCKET_FILTER,
                instructions: program.len() as u32,
                program: address(program.as_ptr()),
                license: address(LICENSE.as_ptr()),
                log_level: 0,
                log_bytes: 0,
                log: 0,
                kernel_version: 0,
                flags: 0,
                name: name(program_name),
            };
            if let Some(log) = log {
                attributes.log_level = 1;
                attributes.log_bytes = log.len() as u32;
                attributes.log = address(log.as_mut_ptr());
            }
            // SAFETY: the part of the union that belongs to the command; program, licence and log live and have the given
            // sizes.
            unsafe { bpf(PROG_LOAD, &attributes) }.and_then(own)
        };
        // The first attempt is without a log, because a log that is too small would be an error by itself.
        let error = match attempt(None) {
            Ok(fd) => return Ok(Self { what: what.into(), fd }),
            Err(e) => e,
        };
        let mut log = vec![0; LOG_BYTES];
        let second = attempt(Some(&mut log));
        let text = String::from_utf8_lossy(log.split(|b| *b == 0).next().unwrap_or_default());
        let mut failure = failed(what, "BPF_PROG_LOAD", &error);
        let said = verifier_words(&text).filter(|_| second.is_err());
        let rejected = said.is_some();
        if let Some(said) = said {
            failure.words = Some(format!("BPF_PROG_LOAD: the verifier: {said}"));
        }
        Err(LoadError { error: failure, rejected })
    }

    /// The socket uses the program from now on, also after this descriptor is closed.
    pub(crate) fn attach(&self, socket: &OwnedFd) -> Result<()> {
        packet_socket::set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &self.fd.as_raw_fd())
            .map_err(|e| failed(&self.what, "SO_ATTACH_BPF", &e))
    }
}

/// Why the verifier rejected a program: the last line of its log, before its statistics. Lines before it list instructions and
/// the state of registers.
fn verifier_words(log: &str) -> Option<String> {
    let reason = log.lines().map(str::trim).rfind(|l| !l.is_empty() && !is_statistics(l))?;
    Some(reason.to_string())
}

fn is_statistics(line: &str) -> bool {
    ["processed ", "verification time ", "stack depth ", "mark_precise:"].iter().any(|s| line.starts_with(s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{Assembler, Register, Width};

    #[test]
    fn the_last_words_of_the_verifier_are_its_reason() {
        let log = "0: R1=ctx() R10=fp0\n0: (bf) r6 = r1                       ; R1=ctx() R6_w=ctx()\n\
                   1: (61) r0 = *(u32 *)(r6 +72)\ninvalid bpf_context access off=72 size=4\n\
                   processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n\n";
        assert_eq!(verifier_words(log).as_deref(), Some("invalid bpf_context access off=72 size=4"));
        assert_eq!(verifier_words("verification time 12 usec\nstack depth 4\nprocessed 3 insns"), None);
        assert_eq!(verifier_words(""), None);
    }

    /// `tc_classid` is a field that a socket filter may not read.
    #[test]
    fn a_rejected_program_has_the_words_of_the_verifier() {
        const TC_CLASSID: i16 = 72;
        let mut a = Assembler::default();
        a.load(Width::Word, Register::R0, Register::R1, TC_CLASSID);
        a.exit();
        let LoadError { error, rejected } = BpfProgram::load("filter", &a.finish(), "rw_test").unwrap_err();
        if error.errno == Some(libc::EPERM) {
            assert!(!rejected && error.reason().contains("CAP_BPF"), "{error}");
            ringwise_testkit::skipped("a_rejected_program_has_the_words_of_the_verifier", &error.reason());
            return;
        }
        assert!(rejected && error.errno == Some(libc::EACCES), "{error}");
        let start =
            "filter: EACCES (Permission denied): BPF_PROG_LOAD: the verifier: invalid bpf_context access off=72";
        assert!(error.to_string().starts_with(start), "{error}");
    }

    #[test]
    fn the_arguments_have_the_layout_of_the_kernel() {
        assert_eq!((size_of::<Load>(), std::mem::offset_of!(Load, name)), (64, 48));
        assert_eq!((std::mem::offset_of!(Load, program), std::mem::offset_of!(Load, log)), (8, 32));
    }
}
