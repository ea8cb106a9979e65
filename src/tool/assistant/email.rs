//! `send_email`: writes a message (RFC 5322, with MIME for all that is not ASCII) into an outbox
//! folder, from which a mail program can take it. Nothing is sent over a network.

use crate::call::{CheckedCall, Domains, Effect, ToolSpec};
use crate::tool::text::plain;
use crate::tool::{Outcome, Tool, ToolError, text_argument};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Tells the time; a test's clock stands still.
pub type Clock = Box<dyn Fn() -> jiff::Timestamp + Send>;

/// Writes mail.
pub struct SendEmail {
    outbox: PathBuf,
    from: String,
    clock: Clock,
    spec: ToolSpec,
}

impl fmt::Debug for SendEmail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendEmail")
            .field("outbox", &self.outbox)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl SendEmail {
    /// Mail from the address `from` into the folder `outbox`, which is made when it is needed.
    ///
    /// # Errors
    /// An address that is none.
    pub fn new(
        outbox: impl Into<PathBuf>,
        from: impl Into<String>,
        clock: Clock,
    ) -> Result<Self, ToolError> {
        let from = from.into();
        check_address(&from)?;
        Ok(Self {
            outbox: outbox.into(),
            from,
            clock,
            spec: ToolSpec {
                name: "send_email".into(),
                description: "Send an email.".into(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "to": {"type": "string", "format": "email", "maxLength": 254},
                        "subject": {"type": "string", "minLength": 1, "maxLength": 200},
                        "body": {"type": "string", "maxLength": 2000},
                    },
                    "required": ["to", "subject", "body"],
                    "additionalProperties": false,
                }),
                effect: Effect::Risk,
                idempotent: false,
            },
        })
    }

    /// Tries whether the outbox, where it is there already, takes a message, so that a run need not
    /// find out in its middle.
    ///
    /// # Errors
    /// A folder that is read-only, or a full disk.
    pub fn try_outbox(&self) -> Result<(), ToolError> {
        if !self.outbox.exists() {
            return Ok(());
        }
        self.temporary("?\n")
            .map(drop)
            .map_err(|error| self.unwritable(error))
    }

    fn unwritable(&self, error: io::Error) -> ToolError {
        let error = plain(error);
        ToolError::storage(format!("the outbox {}: {error}", self.outbox.display()))
    }

    fn temporary(&self, message: &str) -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new()
            .prefix(".mail-")
            .suffix(".tmp")
            .tempfile_in(&self.outbox)?;
        file.write_all(message.as_bytes())?;
        Ok(file)
    }

    /// Writes the message under a name that no other has, whole or not at all.
    fn deliver(&self, message: &str, time: jiff::Timestamp, id: &str) -> io::Result<PathBuf> {
        fs_err::create_dir_all(&self.outbox)?;
        let mut file = self.temporary(message)?;
        file.as_file().sync_all()?;
        let stem = format!("{}-{id}", time.strftime("%Y%m%dT%H%M%SZ"));
        let mut number = 1;
        loop {
            let name = if number == 1 {
                format!("{stem}.eml")
            } else {
                format!("{stem}-{number}.eml")
            };
            let path = self.outbox.join(name);
            match file.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                    file = error.file;
                    number += 1;
                }
                Err(error) => return Err(error.error),
            }
        }
    }
}

impl Tool for SendEmail {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        Ok(Domains::new())
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        let to = text_argument(call, "to")?;
        let subject = text_argument(call, "subject")?;
        let body = text_argument(call, "body")?;
        check_address(to)?;
        if subject.chars().any(char::is_control) {
            return Err(ToolError::new("the subject is one line of text"));
        }
        let time = (self.clock)();
        let mut hash = Sha256::new();
        for part in [time.to_string().as_str(), to, subject, body] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let id = hash
            .finalize()
            .iter()
            .take(6)
            .fold(String::new(), |mut id, byte| {
                let _ = write!(id, "{byte:02x}");
                id
            });
        let message = message(&self.from, to, subject, body, time, &id);
        let path = self
            .deliver(&message, time, &id)
            .map_err(|error| self.unwritable(error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Outcome {
            result: json!({"to": to, "subject": subject, "file": name}),
            changes: vec![format!("mail to {to}: {subject} ({})", path.display())],
        })
    }
}

/// `local@domain` in ASCII, quoted forms left out: what cannot break out of a header.
fn check_address(address: &str) -> Result<(), ToolError> {
    let dots = |text: &str| !text.starts_with('.') && !text.ends_with('.') && !text.contains("..");
    let valid = address.len() <= 254
        && address.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty()
                && local.len() <= 64
                && dots(local)
                && local
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~.-".contains(&b))
                && !domain.is_empty()
                && dots(domain)
                && domain
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
        });
    if valid {
        Ok(())
    } else {
        Err(ToolError::new(format!("{address:?} is not a mail address")))
    }
}

fn message(
    from: &str,
    to: &str,
    subject: &str,
    body: &str,
    time: jiff::Timestamp,
    id: &str,
) -> String {
    let date = time.strftime("%a, %d %b %Y %H:%M:%S +0000");
    let domain = from
        .split_once('@')
        .map_or("localhost", |(_, domain)| domain);
    let subject = header_text("Subject: ".len(), subject);
    let body = quoted_printable(body);
    format!(
        "Date: {date}\r\nFrom: {from}\r\nTo: {to}\r\nSubject: {subject}\r\n\
         Message-ID: <{id}@{domain}>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\r\n{body}\r\n"
    )
}

/// A header's text: as it is where it is short ASCII, else encoded words (RFC 2047, `Q`), folded
/// between them. `indent`: columns taken by the header's name.
fn header_text(indent: usize, text: &str) -> String {
    let plain = text.bytes().all(|b| (b' '..=b'~').contains(&b))
        && !text.contains("=?")
        && text.trim() == text
        && indent + text.len() <= 78;
    if plain {
        return text.to_owned();
    }
    const START: &str = "=?utf-8?Q?";
    const END: &str = "?=";
    let mut lines = Vec::new();
    let mut line = String::from(START);
    for c in text.chars() {
        let encoded = if c == ' ' {
            "_".to_owned()
        } else if c.is_ascii_alphanumeric() {
            c.to_string()
        } else {
            hex_bytes(c)
        };
        // A word has at most 75 characters, and no character is torn apart.
        let room = if lines.is_empty() { 75 - indent } else { 75 };
        if line.len() + encoded.len() + END.len() > room {
            lines.push(std::mem::replace(&mut line, START.to_owned()) + END);
        }
        line.push_str(&encoded);
    }
    lines.push(line + END);
    lines.join("\r\n ")
}

/// A text body (RFC 2045, 6.7): lines of at most 76 characters, ends of line as CRLF.
fn quoted_printable(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::new();
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push_str("\r\n");
        }
        let mut width = 0;
        let mut characters = line.chars().peekable();
        while let Some(c) = characters.next() {
            let last = characters.peek().is_none();
            let literal = ('!'..='~').contains(&c) && c != '=' || (c == ' ' && !last);
            let encoded = if literal { c.to_string() } else { hex_bytes(c) };
            if width + encoded.len() > 75 {
                out.push_str("=\r\n");
                width = 0;
            }
            width += encoded.len();
            out.push_str(&encoded);
        }
    }
    out
}

/// `=D0=96` for a character's bytes.
fn hex_bytes(c: char) -> String {
    let mut buffer = [0; 4];
    c.encode_utf8(&mut buffer)
        .bytes()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "={byte:02X}");
            hex
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Approval, Call, FailureKind, Policy, Verdict};
    use crate::tool::Registry;
    use std::path::Path;

    fn registry(outbox: &Path) -> Registry {
        let clock: Clock = Box::new(|| jiff::Timestamp::from_second(1_796_000_000).unwrap());
        let mut registry = Registry::new();
        let tool = SendEmail::new(outbox, "me@example.org", clock).unwrap();
        registry.register(Box::new(tool)).unwrap();
        registry
    }

    fn send(
        registry: &mut Registry,
        to: &str,
        subject: &str,
        body: &str,
    ) -> Result<Outcome, String> {
        let moves = registry.moves(&Policy::default()).unwrap();
        let call = Call::new(
            "send_email",
            [("to", to), ("subject", subject), ("body", body)],
        );
        let Verdict::Ask(pending) = moves.check(call).map_err(|failure| failure.to_string())?
        else {
            panic!("sending is asked about");
        };
        registry
            .run(&pending.approve(Approval::Person))
            .map_err(|error| error.message)
    }

    #[test]
    fn a_message_lands_in_the_outbox() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = folder.path().join("out");
        let mut registry = registry(&outbox);
        let body = "Привет!\nKaffee = gut \n".to_owned() + &"long ".repeat(30);
        let first = send(
            &mut registry,
            "anna@example.org",
            "Встреча в четверг, 14:00 — кухня 🦊",
            &body,
        )
        .unwrap();
        let file = first.result["file"].as_str().unwrap().to_owned();
        let text = fs_err::read_to_string(outbox.join(&file)).unwrap();
        insta::assert_snapshot!(text.replace("\r\n", "\n"));
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
        assert!(text.lines().all(|line| line.len() <= 76), "{text}");
        // The same message at the same second is a second message.
        let second = send(
            &mut registry,
            "anna@example.org",
            "Встреча в четверг, 14:00 — кухня 🦊",
            &body,
        )
        .unwrap();
        assert_ne!(second.result["file"], file);
        assert_eq!(std::fs::read_dir(&outbox).unwrap().count(), 2);
    }

    #[test]
    fn nothing_gets_into_the_headers() {
        let folder = tempfile::tempdir().unwrap();
        let mut registry = registry(folder.path());
        let cases = [
            ("a@b.org\r\nBcc: all@b.org", "Hi"),
            ("a@b.org", "Hi\r\nBcc: all@b.org"),
            ("a@b.org", "Hi\nX"),
            ("a@b.org,c@b.org", "Hi"),
            ("a b@c.org", "Hi"),
            ("nobody", "Hi"),
            ("@", "Hi"),
            ("<a@b.org>", "Hi"),
        ];
        for (to, subject) in cases {
            assert!(
                send(&mut registry, to, subject, "x").is_err(),
                "{to:?} {subject:?}"
            );
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let outcome = send(&mut registry, "a@b.org", "=?utf-8?Q?x?=", ".\r\n.\r").unwrap();
        let path = folder.path().join(outcome.result["file"].as_str().unwrap());
        let text = fs_err::read_to_string(path).unwrap();
        assert!(
            text.contains("Subject: =?utf-8?Q?=3D=3Futf=2D8=3FQ=3Fx=3F=3D?=\r\n"),
            "{text}"
        );
    }

    #[test]
    fn an_outbox_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs_err::write(&file, "x").unwrap();
        let mut registry = registry(&file);
        let error = send(&mut registry, "a@b.org", "Hi", "x").unwrap_err();
        assert!(error.contains("file"), "{error}");
        let moves = registry.moves(&Policy::default()).unwrap();
        let failure = moves
            .check(Call::new("send_email", [("to", "a@b.org")]))
            .unwrap_err();
        assert_eq!(failure.kind, FailureKind::MissingArgument);
    }
}
