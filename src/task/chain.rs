//! The hash chain over a task's events: every event's hash covers the one before it, so that a
//! changed, lost or moved event is found.

use super::event::{Entry, Event, VERSION};
use super::id::TaskId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// SHA-256 over the hash before, the task, the sequence and the event's bytes.
pub(super) type Hash = [u8; 32];

/// Where a task's chain stands: its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Sequence of the last event; 0: none yet.
    pub sequence: u64,
    /// Its hash; of an empty chain: [`start`].
    pub hash: Hash,
}

/// What precedes a task's first event. It binds the chain to its task.
pub(super) fn start(task: &TaskId) -> Position {
    let mut hasher = Sha256::new();
    hasher.update(b"snaffle journal 1\0");
    hasher.update(task.as_str().as_bytes());
    Position {
        sequence: 0,
        hash: hasher.finalize().into(),
    }
}

/// The position after an event with these bytes.
pub(super) fn next(before: &Position, body: &[u8]) -> Position {
    let sequence = before.sequence + 1;
    let mut hasher = Sha256::new();
    hasher.update(before.hash);
    hasher.update(sequence.to_le_bytes());
    hasher.update((body.len() as u64).to_le_bytes());
    hasher.update(body);
    Position {
        sequence,
        hash: hasher.finalize().into(),
    }
}

/// An event's canonical bytes are this, as JSON; what is stored is what was hashed.
#[derive(Serialize, Deserialize)]
struct Body {
    v: u32,
    time: String,
    #[serde(flatten)]
    event: Event,
}

/// The canonical bytes of an event.
pub(super) fn encode(time: Timestamp, event: Event) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Body {
        v: VERSION,
        time: time.to_string(),
        event,
    })
}

/// The event that `body` holds.
pub(super) fn decode(sequence: u64, body: &str) -> Result<Entry, String> {
    let body: Body = serde_json::from_str(body).map_err(|error| error.to_string())?;
    if body.v > VERSION {
        return Err(format!("written by a newer version (encoding {})", body.v));
    }
    let time = body.time.parse().map_err(|_| "its time is unreadable")?;
    Ok(Entry {
        sequence,
        time,
        event: body.event,
    })
}

/// What is wrong with a task's events. Everything before stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The event's bytes or its hash were changed.
    #[error("event {sequence} was changed after it was written")]
    Changed {
        /// The first event that does not fit the chain.
        sequence: u64,
    },
    /// An event is missing between others.
    #[error("event {sequence} is missing, later ones are there")]
    Missing {
        /// The first missing event.
        sequence: u64,
    },
    /// The journal ends before the head that was synced separately.
    #[error("the last events are lost: the journal ends after event {last}, its head is at {head}")]
    TailLost {
        /// The last event that is there.
        last: u64,
        /// The last event that was.
        head: u64,
    },
    /// The head names another hash than the event has.
    #[error("event {sequence} is not the one that the journal's head names")]
    HeadDiffers {
        /// The head's event.
        sequence: u64,
    },
    /// The head file is missing or cannot be read.
    #[error("the journal's head for this task is missing or unreadable")]
    HeadUnreadable,
    /// The bytes fit the chain and yet are no event of this version.
    #[error("event {sequence} cannot be read: {reason}")]
    Unreadable {
        /// The event.
        sequence: u64,
        /// Why.
        reason: String,
    },
    /// The database itself is broken here.
    #[error("the database is broken after event {last}: {reason}")]
    Database {
        /// The last event that could be read.
        last: u64,
        /// What SQLite says.
        reason: String,
    },
}

/// One stored row.
pub(super) struct Row {
    pub sequence: u64,
    pub hash: Vec<u8>,
    pub body: String,
}

/// Follows the chain over `rows` (in order) and against the `head`. Returns the entries that
/// stand, where the chain stands after them, and the first damage.
pub(super) fn verify(
    task: &TaskId,
    rows: impl Iterator<Item = Result<Row, String>>,
    head: Option<Position>,
) -> (Vec<Entry>, Position, Option<Damage>) {
    let mut entries = Vec::new();
    let mut position = start(task);
    let mut head_seen = head.is_some_and(|head| head.sequence == 0);
    for row in rows {
        let damage = match row {
            Err(reason) => Some(Damage::Database {
                last: position.sequence,
                reason,
            }),
            Ok(row) if row.sequence != position.sequence + 1 => Some(Damage::Missing {
                sequence: position.sequence + 1,
            }),
            Ok(row) => {
                let after = next(&position, row.body.as_bytes());
                if after.hash[..] != row.hash[..] {
                    Some(Damage::Changed {
                        sequence: after.sequence,
                    })
                } else if head
                    .is_some_and(|head| head.sequence == after.sequence && head.hash != after.hash)
                {
                    Some(Damage::HeadDiffers {
                        sequence: after.sequence,
                    })
                } else {
                    match decode(after.sequence, &row.body) {
                        Err(reason) => Some(Damage::Unreadable {
                            sequence: after.sequence,
                            reason,
                        }),
                        Ok(entry) => {
                            head_seen |= head == Some(after);
                            position = after;
                            entries.push(entry);
                            None
                        }
                    }
                }
            }
        };
        if damage.is_some() {
            return (entries, position, damage);
        }
    }
    let damage = match head {
        None => Some(Damage::HeadUnreadable),
        Some(head) if !head_seen => Some(Damage::TailLost {
            last: position.sequence,
            head: head.sequence,
        }),
        Some(_) => None,
    };
    (entries, position, damage)
}
