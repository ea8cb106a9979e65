//! An evaluated prefix on disk, so that the next process need not evaluate it again.
//!
//! Layout, numbers little-endian: magic (8 bytes), fingerprint (16), number of tokens (8), length
//! of the memory (8), checksum of all that follows (16), tokens (4 each), memory. A file that is
//! foreign, truncated or damaged reads as `None`: it is a cache, and never an error of the user's.

use crate::vocab::TokenId;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"SNAFPFX1";
const HEADER: usize = 8 + 16 + 8 + 8 + 16;

/// A prefix as it was saved.
#[derive(Debug, PartialEq, Eq)]
pub struct SavedPrefix {
    /// What was evaluated.
    pub tokens: Vec<TokenId>,
    /// The backend's memory after them.
    pub memory: Vec<u8>,
}

/// Writes a prefix under a temporary name and renames it. The file is readable only by its owner:
/// it holds what the prompt says.
///
/// # Errors
/// Where the folder or file cannot be written.
pub fn write(path: &Path, fingerprint: u128, tokens: &[TokenId], memory: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs_err::create_dir_all(folder)?;
    let mut spelled = Vec::with_capacity(tokens.len() * 4);
    for token in tokens {
        spelled.extend_from_slice(&token.to_le_bytes());
    }
    let inside = |error: io::Error| {
        let reason = error.kind();
        io::Error::new(reason, format!("{}: {reason}", path.display()))
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(inside)?;
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&fingerprint.to_le_bytes());
    header.extend_from_slice(&(tokens.len() as u64).to_le_bytes());
    header.extend_from_slice(&(memory.len() as u64).to_le_bytes());
    header.extend_from_slice(&checksum(&spelled, memory).to_le_bytes());
    for part in [&header[..], &spelled, memory] {
        file.write_all(part).map_err(inside)?;
    }
    file.persist(path).map_err(|failed| {
        let reason = failed.error;
        io::Error::new(reason.kind(), format!("{}: {reason}", path.display()))
    })?;
    Ok(())
}

/// Reads a prefix of at most `most_tokens`; `None` where there is no file or it does not fit.
///
/// # Errors
/// Where the file exists but cannot be read.
pub fn read(path: &Path, fingerprint: u128, most_tokens: usize) -> io::Result<Option<SavedPrefix>> {
    let mut file = match fs_err::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut header = [0_u8; HEADER];
    if length < HEADER as u64 {
        return Ok(None);
    }
    file.read_exact(&mut header)?;
    let (magic, rest) = header.split_at(8);
    let (print, rest) = rest.split_at(16);
    let (count, rest) = rest.split_at(8);
    let (size, sum) = rest.split_at(8);
    let (count, size) = (number(count), number(size));
    let fits = count
        .checked_mul(4)
        .and_then(|bytes| bytes.checked_add(size))
        .and_then(|bytes| bytes.checked_add(HEADER as u64))
        == Some(length);
    if magic != MAGIC
        || print != fingerprint.to_le_bytes()
        || !fits
        || count == 0
        || count > most_tokens as u64
    {
        return Ok(None);
    }
    let mut body = Vec::new();
    // The length was just compared with the file's own: a file that shrinks meanwhile is caught
    // by the comparison below.
    file.take(length).read_to_end(&mut body)?;
    if body.len() as u64 + HEADER as u64 != length {
        return Ok(None);
    }
    let (Ok(count), Ok(size)) = (usize::try_from(count), usize::try_from(size)) else {
        return Ok(None);
    };
    let memory = body.split_off(count * 4);
    debug_assert_eq!(memory.len(), size);
    if sum != checksum(&body, &memory).to_le_bytes() {
        return Ok(None);
    }
    let tokens = body
        .chunks_exact(4)
        .map(|bytes| {
            bytes
                .iter()
                .rev()
                .fold(0, |n, &b| n << 8 | TokenId::from(b))
        })
        .collect();
    Ok(Some(SavedPrefix { tokens, memory }))
}

/// Eight little-endian bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

/// Guards against damage, not against malice.
fn checksum(tokens: &[u8], memory: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write(tokens);
    hasher.write(memory);
    hasher.finish128().as_u128()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("prefix");
        write(&path, 7, &[1, 2, 70_000], b"memory").unwrap();
        (folder, path)
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_is_left() {
        let (_folder, path) = saved();
        let read = read(&path, 7, 3).unwrap().unwrap();
        assert_eq!(read.tokens, [1, 2, 70_000]);
        assert_eq!(read.memory, b"memory");
        let names: Vec<_> = fs_err::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn foreign_missing_and_oversized_files_read_as_nothing() {
        let (folder, path) = saved();
        assert_eq!(read(&path, 8, 3).unwrap(), None);
        assert_eq!(read(&path, 7, 2).unwrap(), None);
        assert_eq!(read(&folder.path().join("none"), 7, 3).unwrap(), None);
        fs_err::write(&path, b"").unwrap();
        assert_eq!(read(&path, 7, 3).unwrap(), None);
        fs_err::write(&path, vec![0xFF; 500]).unwrap();
        assert_eq!(read(&path, 7, 3).unwrap(), None);
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_noticed() {
        let (_folder, path) = saved();
        let good = fs_err::read(&path).unwrap();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                fs_err::write(&path, &bad).unwrap();
                assert_eq!(read(&path, 7, 3).unwrap(), None, "bit {bit} of byte {at}");
            }
            fs_err::write(&path, &good[..at]).unwrap();
            assert_eq!(read(&path, 7, 3).unwrap(), None, "{at} bytes");
        }
    }
}
