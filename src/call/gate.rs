//! The one gate that every call passes, whoever wrote it.

use super::reply::Call;

/// A call that passed the gate. There is no other way to make one.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedCall {
    call: Call,
}

impl CheckedCall {
    /// What is called, with which arguments.
    pub fn call(&self) -> &Call {
        &self.call
    }
}
