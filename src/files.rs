//! What every module that reads or locks a file does alike: reading no more than is bearable, so
//! that a device or a mistake cannot fill the memory, and waiting for a lock, but not for ever.
//!
//! It knows no paths: whoever opens the file names it in errors.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// How often a lock that is held is tried again.
const TICK: Duration = Duration::from_millis(5);

/// All bytes of `reader`; `None` where there are more than `most`.
///
/// # Errors
/// Where it cannot be read.
pub fn bytes_of(reader: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// The text of `reader`; `None` where it has more than `most` bytes.
///
/// # Errors
/// Where it cannot be read or is not UTF-8.
pub fn text_of(reader: impl Read, most: u64) -> io::Result<Option<String>> {
    let mut text = String::new();
    reader.take(most + 1).read_to_string(&mut text)?;
    Ok((text.len() as u64 <= most).then_some(text))
}

/// Takes the advisory lock of an open file, which lasts as long as the file is open; waits at most
/// `wait` for whoever holds it. Whether it was to be had.
///
/// # Errors
/// Where the file cannot be locked at all.
pub fn lock_within(file: &File, wait: Duration) -> io::Result<bool> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {
                let left = wait.saturating_sub(start.elapsed());
                if left.is_zero() {
                    return Ok(false);
                }
                std::thread::sleep(left.min(TICK));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_is_allowed() {
        for (text, most, expected) in [
            ("", 0, Some("")),
            ("свет", 8, Some("свет")),
            ("lamp!", 4, None),
        ] {
            assert_eq!(text_of(text.as_bytes(), most).unwrap().as_deref(), expected);
            let bytes = bytes_of(text.as_bytes(), most).unwrap();
            assert_eq!(bytes.as_deref(), expected.map(str::as_bytes));
        }
        assert!(bytes_of(io::repeat(0), 100).unwrap().is_none());
        assert!(text_of(&b"\xff"[..], 100).is_err());
    }

    #[test]
    fn a_lock_is_waited_for_and_then_left() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(place.path()).unwrap();
        let (first, second) = (open(), open());
        assert!(lock_within(&first, Duration::ZERO).unwrap());
        assert!(!lock_within(&second, Duration::from_millis(20)).unwrap());
        drop(first);
        assert!(lock_within(&second, Duration::ZERO).unwrap());
    }
}
