//! A reader that knows how much is left: every length in the file is checked against it before
//! anything is allocated or skipped.

use super::super::shown::shown_bytes as shown;
use super::error::GgufProblem;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Longest string that is read or skipped, in bytes.
pub const LONGEST_STRING: u64 = 64 << 20;
/// Memory for everything that is kept of one file, in bytes.
pub const KEPT_BYTES: usize = 32 << 20;

/// A file (or bytes) of known length.
pub struct Reader<R> {
    inner: BufReader<R>,
    position: u64,
    length: u64,
    kept: usize,
    section: &'static str,
}

impl<R: Read + Seek> Reader<R> {
    /// A reader at the start of `inner`, which has `length` bytes.
    pub fn new(inner: R, length: u64) -> Self {
        Self {
            inner: BufReader::with_capacity(64 << 10, inner),
            position: 0,
            length,
            kept: 0,
            section: "the header",
        }
    }

    /// Names the part of the file that is read next, for errors.
    pub fn section(&mut self, section: &'static str) {
        self.section = section;
    }

    /// Bytes read or skipped so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes left.
    pub fn remaining(&self) -> u64 {
        self.length - self.position
    }

    fn truncated(&self) -> GgufProblem {
        GgufProblem::Truncated {
            section: self.section.to_owned(),
            at: self.position,
            length: self.length,
        }
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<(), GgufProblem> {
        let wanted = out.len() as u64;
        if wanted > self.remaining() {
            return Err(self.truncated());
        }
        match self.inner.read_exact(out) {
            Ok(()) => {
                self.position += wanted;
                Ok(())
            }
            // The file became shorter while it was read.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(self.truncated())
            }
            Err(error) => Err(GgufProblem::Read(error)),
        }
    }

    /// The next `N` bytes.
    pub fn bytes<const N: usize>(&mut self) -> Result<[u8; N], GgufProblem> {
        let mut out = [0; N];
        self.fill(&mut out)?;
        Ok(out)
    }

    /// A 32-bit number.
    pub fn u32(&mut self) -> Result<u32, GgufProblem> {
        self.bytes().map(u32::from_le_bytes)
    }

    /// A 64-bit number.
    pub fn u64(&mut self) -> Result<u64, GgufProblem> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// Goes on without reading.
    pub fn skip(&mut self, count: u64) -> Result<(), GgufProblem> {
        if count > self.remaining() {
            return Err(self.truncated());
        }
        let offset = i64::try_from(count).map_err(|_| self.truncated())?;
        self.inner
            .seek_relative(offset)
            .map_err(GgufProblem::Read)?;
        self.position += count;
        Ok(())
    }

    /// Goes to an absolute position inside the file.
    pub fn go(&mut self, position: u64) -> Result<(), GgufProblem> {
        if position > self.length {
            return Err(self.truncated());
        }
        self.inner
            .seek(SeekFrom::Start(position))
            .map_err(GgufProblem::Read)?;
        self.position = position;
        Ok(())
    }

    /// The length of a string, checked against `limit` and what is left.
    fn string_length(&mut self, limit: u64, what: &str) -> Result<u64, GgufProblem> {
        let length = self.u64()?;
        if length > limit {
            return Err(GgufProblem::TooLong {
                what: what.to_owned(),
                length,
                limit,
            });
        }
        if length > self.remaining() {
            return Err(self.truncated());
        }
        Ok(length)
    }

    /// A string, kept; `limit` in bytes.
    pub fn string(&mut self, limit: u64, what: &str) -> Result<Vec<u8>, GgufProblem> {
        let length = self.string_length(limit, what)?;
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        self.keep(size)?;
        let mut out = vec![0; size];
        self.fill(&mut out)?;
        Ok(out)
    }

    /// A name: a string that must be text.
    pub fn name(&mut self, limit: u64, what: &str) -> Result<String, GgufProblem> {
        let bytes = self.string(limit, what)?;
        String::from_utf8(bytes).map_err(|error| {
            GgufProblem::NotText(format!("{what} \"{}\"", shown(error.as_bytes())))
        })
    }

    /// A string that is not kept; returns its length in bytes.
    pub fn skip_string(&mut self, what: &str) -> Result<u64, GgufProblem> {
        let length = self.string_length(LONGEST_STRING, what)?;
        self.skip(length)?;
        Ok(length)
    }

    /// Notes that `size` bytes are about to be kept.
    pub fn keep(&mut self, size: usize) -> Result<(), GgufProblem> {
        self.kept = self.kept.saturating_add(size);
        if self.kept > KEPT_BYTES {
            return Err(GgufProblem::TooMany {
                what: "bytes of names and values".to_owned(),
                count: self.kept as u64,
                limit: KEPT_BYTES as u64,
            });
        }
        Ok(())
    }
}
