//! The figures of a session: charts of `ringwise_draw`, and the changes with their intervals ([`forest`]).

mod forest;
mod of;

pub use of::{figures, of_several_results};

/// One picture of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// For the file name: `loss-by-size-2`.
    pub name: String,
    /// One line above the figure, without a full stop.
    pub title: String,
    /// What is drawn; shown below the figure.
    pub caption: String,
    /// A complete document.
    pub svg: String,
    /// Needs the width of two figures.
    pub wide: bool,
}
