//! Ctrl-C: the first ends the run after the current token, the second ends the program. With no
//! run going on, the first ends the program.

use super::error::Failure;
use super::exit::Exit;
use crate::model::Cancel;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Listens for Ctrl-C and for a polite request to terminate.
#[derive(Clone, Debug, Default)]
pub struct Interrupts(Arc<Mutex<Option<Cancel>>>);

impl Interrupts {
    /// Begins to listen.
    ///
    /// # Errors
    /// Where the system does not allow it.
    pub fn install() -> Result<Self, Failure> {
        let interrupts = Self::default();
        let heard = interrupts.clone();
        ctrlc::set_handler(move || heard.interrupt())
            .map_err(|error| Failure::new(Exit::Internal, format!("Ctrl-C: {error}")))?;
        Ok(interrupts)
    }

    /// A run begins: what the next interruption sets.
    pub fn begin(&self) -> Cancel {
        let cancel = Cancel::default();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel.clone());
        cancel
    }

    /// The run has ended.
    pub fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn interrupt(&self) {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match current.as_ref() {
            Some(cancel) if !cancel.is_cancelled() => cancel.cancel(),
            _ => leave(),
        }
    }
}

/// Ends the program at once. The journal is durable at every moment, and files are replaced whole:
/// nothing is lost by it.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "whatever the program does, it is to end now"
)]
fn leave() {
    // The terminal shows `^C` in the middle of a line.
    if io::stderr().is_terminal() {
        _ = writeln!(io::stderr());
    }
    std::process::exit(i32::from(Exit::Cancelled.code()))
}
