//! What a session shows as figures: charts of `ringwise_draw`, and the changes with their intervals ([`forest`]).

mod forest;
mod of;

pub use of::figures;

/// One picture of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// For a file: `loss-by-size-2`.
    pub name: String,
    /// One line above the figure, without a full stop.
    pub title: String,
    /// What is drawn, for below it.
    pub caption: String,
    /// A whole document.
    pub svg: String,
    /// Takes the room of two.
    pub wide: bool,
}
