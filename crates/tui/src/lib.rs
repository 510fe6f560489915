//! The output of `watch`: the full screen, and [`lines`] for programs and people.
//!
//! ```text
//!   Rates ─► View (state: what is shown, history, sort, filter) ─► draw (panels) ─► Buffer ─► backend ─► terminal
//!   bytes of keys ─► Key ─► View::key ─► Act (what the loop has to do)
//!   Tape ─► replay ─► View          Session: View ⇄ terminal
//! ```
//! [`draw`] is a pure function from a [`View`] and a size to a buffer of cells; only `backend` writes, and only
//! [`ScreenSession`] waits for keys. Colour alone never carries meaning: everything in red or yellow also has a number or a
//! word, and the heat map has shades.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backend;
mod cpus;
mod curves_panel;
mod draw;
mod headline;
mod help;
mod history;
mod keys;
pub mod lines;
mod links;
mod panel;
mod queues;
mod remedy;
mod replay;
mod row_selection;
mod session;
mod table;
mod view;

pub use draw::draw;
pub use history::{History, Point};
pub use keys::{Key, LoopAction};
pub use replay::{Speed, enter, replay};
pub use session::{Error, Result, ScreenSession, WaitEnd, possible};
pub use view::{Mode, Panel, PanelChoice, View};
