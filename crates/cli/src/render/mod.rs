//! Values in, text out. Nothing here reads a file or asks the terminal.

pub mod bands;
pub mod check;
pub mod columns;
pub mod compare;
pub mod control;
pub mod explain;
pub mod facts;
mod groups;
pub mod hands;
pub mod json;
pub mod learned;
pub mod matrix;
pub mod moderation;
pub mod outcome;
pub mod plan;
pub mod plan_index;
pub mod report;
pub mod rivals;
pub mod rules;
pub mod show;
pub mod standing;
pub mod status;
pub mod steering;
pub mod svg;
pub mod table;
