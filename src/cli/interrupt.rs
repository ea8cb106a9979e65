//! Ctrl-C: the first asks the run to end after the current token, the second ends the program.

use super::exit::Exit;
use crate::model::Cancel;

/// Makes Ctrl-C (and a polite request to terminate) set `cancel`.
///
/// # Errors
/// Where another handler is installed already.
pub fn install(cancel: &Cancel) -> Result<(), ctrlc::Error> {
    let cancel = cancel.clone();
    ctrlc::set_handler(move || {
        if cancel.is_cancelled() {
            leave();
        }
        cancel.cancel();
    })
}

/// Ends the program at once. The journal is durable at every moment, and files are replaced whole:
/// nothing is lost by it.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the second Ctrl-C: whatever the program does, it is to end now"
)]
fn leave() {
    std::process::exit(i32::from(Exit::Cancelled.code()))
}
