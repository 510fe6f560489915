//! The kernel's error numbers on which ringwise decides or which it names, from Linux's generic table
//! (`include/uapi/asm-generic/errno-base.h` and `errno.h`).
//!
//! A recording contains these numbers, and must mean the same on every machine. Therefore they do not come from the C
//! library of the machine that reads it.

/// One line per number makes both the constant and its name, so that the two cannot differ.
macro_rules! errnos {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: i32 = $number;)*

        /// The name of a number, as errno(3) lists it. `None`: ringwise has no constant for this number.
        pub fn name(errno: i32) -> Option<&'static str> {
            match errno {
                $($name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

errnos! {
    EPERM = 1, "Operation not permitted.";
    ENOENT = 2, "No such file or directory.";
    ESRCH = 3, "No such process.";
    EINTR = 4, "Interrupted system call.";
    EIO = 5, "Input/output error.";
    ENXIO = 6, "No such device or address.";
    E2BIG = 7, "Argument list too long.";
    EAGAIN = 11, "Resource temporarily unavailable.";
    ENOMEM = 12, "Cannot allocate memory.";
    EACCES = 13, "Permission denied.";
    EFAULT = 14, "Bad address.";
    EBUSY = 16, "Device or resource busy.";
    EEXIST = 17, "File exists.";
    ENODEV = 19, "No such device.";
    ENOTDIR = 20, "Not a directory.";
    EISDIR = 21, "Is a directory.";
    EINVAL = 22, "Invalid argument.";
    ENFILE = 23, "Too many open files in system.";
    EMFILE = 24, "Too many open files.";
    EFBIG = 27, "File too large.";
    ENOSPC = 28, "No space left on device.";
    EROFS = 30, "Read-only file system.";
    EPIPE = 32, "Broken pipe.";
    ERANGE = 34, "Numerical result out of range.";
    ENOSYS = 38, "Function not implemented.";
    ELOOP = 40, "Too many levels of symbolic links.";
    EPROTO = 71, "Protocol error.";
    EOVERFLOW = 75, "Value too large for defined data type.";
    EMSGSIZE = 90, "Message too long.";
    ENOPROTOOPT = 92, "Protocol not available.";
    EOPNOTSUPP = 95, "Operation not supported.";
    EAFNOSUPPORT = 97, "Address family not supported by protocol.";
    EADDRINUSE = 98, "Address already in use.";
    EADDRNOTAVAIL = 99, "Cannot assign requested address.";
    ENETDOWN = 100, "Network is down.";
    ENETUNREACH = 101, "Network is unreachable.";
    ECONNRESET = 104, "Connection reset by peer.";
    ENOBUFS = 105, "No buffer space available.";
    ETIMEDOUT = 110, "Connection timed out.";
    ECONNREFUSED = 111, "Connection refused.";
    EHOSTUNREACH = 113, "No route to host.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_name_of_its_constant() {
        assert_eq!(name(EOPNOTSUPP), Some("EOPNOTSUPP"));
        assert_eq!(name(1), Some("EPERM"));
        assert_eq!(name(0), None);
        assert_eq!(name(524), None, "the kernel's own numbers above 512 are no names of errno(3)");
    }
}
