//! Text from programs and files, made fit to be shown and passed on: bounded, on few lines,
//! without control characters or anything that reverses the direction of writing.

use crate::files;
use std::io;
use std::path::Path;

/// Bytes of the largest file that is read whole.
pub const LARGEST_FILE: u64 = 4 << 20;

/// The text of a file, which may be no longer than [`LARGEST_FILE`]: a device or a mistake must
/// not fill the memory.
///
/// # Errors
/// With the path: a file that cannot be read, is too long, or is not UTF-8.
pub fn read_file(path: &Path) -> io::Result<String> {
    files::text_of(fs_err::File::open(path)?, LARGEST_FILE)?.ok_or_else(|| {
        let message = format!("{}: has more than {LARGEST_FILE} bytes", path.display());
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    })
}

/// The system's own error inside of one that names a temporary file, which nobody knows.
pub fn plain(error: io::Error) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(current) = cause {
        let code = current
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error);
        if let Some(code) = code {
            return io::Error::from_raw_os_error(code);
        }
        cause = match current
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => current.source(),
        };
    }
    error
}

/// `text` without control characters (line feeds and tabs stay) and direction overrides, cut to
/// `limit` characters.
pub fn sanitised(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().filter(|&c| is_harmless(c)).enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// The last `lines` lines of a program's complaint that say something, joined to one.
pub fn last_lines(bytes: &[u8], lines: usize, limit: usize) -> String {
    let text = sanitised(&String::from_utf8_lossy(bytes), usize::MAX);
    let mut last: Vec<&str> = text
        .lines()
        .rev()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(lines)
        .collect();
    last.reverse();
    let joined = last.join("; ");
    let length = joined.chars().count();
    if length <= limit {
        return joined;
    }
    let tail: String = joined.chars().skip(length - limit).collect();
    format!("…{tail}")
}

fn is_harmless(c: char) -> bool {
    let direction = matches!(c,
        '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    !direction && (!c.is_control() || c == '\n' || c == '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_hurt_a_terminal_is_gone() {
        let cases = [
            ("plain\n\ttext", 100, "plain\n\ttext"),
            ("\u{1b}[31mred\u{7}\r\n", 100, "[31mred\n"),
            ("a\u{202E}b", 100, "ab"),
            ("кухня 🦊", 5, "кухня…"),
        ];
        for (text, limit, expected) in cases {
            assert_eq!(sanitised(text, limit), expected);
        }
    }

    #[test]
    fn the_last_lines_are_kept() {
        let cases: [(&[u8], &str); 4] = [
            (b"", ""),
            (b"one\ntwo\n\nthree\n\n", "two; three"),
            (b"\xff\x1b[0m bad", "\u{FFFD}[0m bad"),
            (
                b"0123456789012345678901234567890123456789",
                "…01234567890123456789",
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(last_lines(bytes, 2, 20), expected);
        }
    }
}
