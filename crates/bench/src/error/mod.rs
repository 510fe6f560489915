//! Why an end of a test could not do what it was asked, as values. [`RequestError`] is the whole; each part of it has a
//! type of its own. Their texts are complete: the errno and the words of the kernel or of another program are in them.

mod load;
mod pktgen;
mod program;
mod request;
mod system;

pub use load::{InvalidLoad, LoadError, NotOneHost};
pub use pktgen::{PktgenError, PortFault};
pub use program::{ChildEnd, ProgramError};
pub use request::{Activity, HostError, RequestError};
pub use system::{SystemError, ThreadError};
