//! The full screen of `watch`: a pure function of a [`View`] and a size to a buffer of cells.
//!
//! ```text
//!   Rates ─► View (state: what is shown, history, sort, filter) ─► draw (panels) ─► Buffer ─► backend ─► terminal
//!   bytes of keys ─► Key ─► View::key ─► Act (what the loop has to do)
//! ```
//! Only `backend` writes. No colour alone carries meaning: what is red or yellow has a number or a word, and heat a shade.

mod backend;
mod cpus;
mod draw;
mod events;
mod headline;
mod help;
mod history;
mod keys;
mod links;
mod panel;
mod past;
mod pick;
mod queues;
mod table;
mod view;

pub use backend::Screen;
pub use draw::draw;
pub use events::{Event, events};
pub use history::{History, Point};
pub use keys::{Act, Key, Keys};
pub use view::{Mode, Panel, View};
