//! Why an end of a test could not carry out a request, as values. [`RequestError`] covers all of them; each part has
//! its own type. The texts are complete: they contain the errno and the words of the kernel or of another program.

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
