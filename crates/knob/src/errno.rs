//! Linux error numbers that have a special meaning for a setting.

pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOENT: i32 = 2;
pub(crate) const ESRCH: i32 = 3;
pub(crate) const EINTR: i32 = 4;
pub(crate) const EIO: i32 = 5;
pub(crate) const ENXIO: i32 = 6;
pub(crate) const EAGAIN: i32 = 11;
pub(crate) const EACCES: i32 = 13;
pub(crate) const EBUSY: i32 = 16;
pub(crate) const EEXIST: i32 = 17;
pub(crate) const ENODEV: i32 = 19;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EROFS: i32 = 30;
pub(crate) const ERANGE: i32 = 34;
pub(crate) const EOVERFLOW: i32 = 75;
pub(crate) const EMSGSIZE: i32 = 90;
pub(crate) const EOPNOTSUPP: i32 = 95;
pub(crate) const ECONNREFUSED: i32 = 111;
