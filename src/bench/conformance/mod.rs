//! Schemas with instances that are known to be valid or invalid: what does the grammar alone say
//! of them, and what together with the validator?
//!
//! [`judge()`] looks at one schema, [`Figures`] adds up. Whoever runs many of them does so in other
//! processes, so that one that takes too long or too much is a figure and no end.

pub mod case;
pub mod figures;
pub mod judge;
pub mod masks;
mod order;

pub use case::{Case, CaseError, Test};
pub use figures::{Figures, table};
pub use judge::{Compared, Judgement, Reason, Verdict, judge};
pub use masks::{Masks, walk};
