//! `snaffle model pull` against a local server that speaks the model hub's protocol: what a person
//! is told, what a killed fetch leaves, and that nothing wrong ever looks like a model.
#![cfg(all(feature = "hub", unix))]
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use sha2::{Digest, Sha256};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// More than the program asks of the hub at once.
const SIZE: usize = 20_000_000;
/// What it asks for at once.
const CHUNK: usize = 16 << 20;

fn content() -> Vec<u8> {
    (0..SIZE).map(|at| (at * 31 + at / 251 * 7) as u8).collect()
}

/// How the server behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Right,
    /// Sends the file from another address, as the hub does.
    Redirects,
    /// Sends itself somebody who asks in circles.
    Circles,
    /// Sends the first range, and half of the next one; then nothing.
    Stalls,
    /// The same, and closes.
    Cuts,
    Refuses(u16),
}

/// Ranges that were asked for.
type Ranges = Arc<Mutex<Vec<String>>>;

fn serve(bytes: Vec<u8>, way: Way) -> (String, Ranges) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let ranges = Ranges::default();
    let (seen, home) = (Arc::clone(&ranges), address.clone());
    let bytes = Arc::new(bytes);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (bytes, seen, home) = (Arc::clone(&bytes), Arc::clone(&seen), home.clone());
            std::thread::spawn(move || answer(stream, &bytes, way, &seen, &home));
        }
    });
    (address, ranges)
}

/// Answers one request and closes.
fn answer(
    mut stream: TcpStream,
    bytes: &[u8],
    way: Way,
    seen: &Mutex<Vec<String>>,
    home: &str,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut range) = (String::new(), None);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.trim().strip_prefix("range: bytes=") {
            range = Some(value.to_owned());
        }
    }
    let mut reply = |status: &str, length: usize, more: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nETag: \"x\"\r\nX-Repo-Commit: \
             0123\r\n{more}Connection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body).ok()
    };
    match way {
        Way::Refuses(status) => return reply(&format!("{status} No"), 0, "", &[]),
        Way::Circles => {
            let to = format!("Location: {home}/o/tiny/resolve/v1/tiny.gguf\r\n");
            return reply("302 Found", 0, &to, &[]);
        }
        Way::Redirects if first.contains("/resolve/") => {
            let to = format!("Location: {home}/storage/tiny.gguf\r\nX-Linked-Size: {SIZE}\r\n");
            return reply("302 Found", 0, &to, &[]);
        }
        Way::Right | Way::Redirects | Way::Stalls | Way::Cuts => {}
    }
    if !first.contains("/tiny.gguf ") {
        return reply("404 Not Found", 0, "", &[]);
    }
    if first.starts_with("HEAD") {
        return reply("200 OK", bytes.len(), "", &[]);
    }
    let range = range?;
    seen.lock().unwrap().push(range.clone());
    let (start, end) = range.split_once('-')?;
    let (start, end) = (start.parse::<usize>().ok()?, end.parse::<usize>().ok()? + 1);
    let part = &bytes[start..end.min(bytes.len())];
    match way {
        Way::Stalls | Way::Cuts if start > 0 => {
            reply(
                "206 Partial Content",
                part.len(),
                "",
                &part[..part.len() / 2],
            )?;
            if way == Way::Stalls {
                std::thread::sleep(Duration::from_secs(60));
            }
            None
        }
        _ => reply("206 Partial Content", part.len(), "", part),
    }
}

/// A folder whose manifest has a model called `tiny`.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    fs::create_dir(&models).unwrap();
    let hash: String = Sha256::digest(content())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let manifest = format!(
        "[[model]]\nname = \"tiny\"\ntitle = \"Tiny\"\nfile = \"tiny.gguf\"\nsize = {SIZE}\nsha256 \
         = \"{hash}\"\nlicence = \"MIT\"\n[[model.source]]\nkind = \"hub\"\nrepo = \"o/tiny\"\nfile \
         = \"tiny.gguf\"\nrevision = \"v1\"\n"
    );
    fs::write(models.join("models.toml"), manifest).unwrap();
    folder
}

fn pull(folder: &Path, address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_snaffle"));
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("HF_ENDPOINT", address)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .args(["model", "pull", "tiny"]);
    command
}

fn pulled(folder: &Path, address: &str) -> (i32, String, String) {
    let output = pull(folder, address).output().unwrap();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// What is in the folder of models beside the manifest.
fn left(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder.join("models"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "models.toml")
        .collect();
    names.sort();
    names
}

#[test]
fn a_model_comes_from_where_the_hub_sends_us() {
    for way in [Way::Right, Way::Redirects] {
        let folder = place();
        let (address, ranges) = serve(content(), way);
        let (code, out, err) = pulled(folder.path(), &address);
        assert_eq!((code, err.as_str()), (0, ""), "{way:?}");
        assert_eq!(out, "tiny models/tiny.gguf (19.07 MiB, hash checked)\n");
        assert_eq!(left(folder.path()), ["tiny.gguf"]);
        assert_eq!(*ranges.lock().unwrap(), ["0-16777215", "16777216-19999999"]);
        let got = fs::read(folder.path().join("models/tiny.gguf")).unwrap();
        assert!(got == content(), "{way:?}: other bytes");
    }
}

#[test]
fn what_the_hub_cannot_give_is_one_line_and_no_model() {
    let mut other = content();
    other[SIZE / 2] ^= 1;
    for (bytes, way, says) in [
        (other, Way::Right, "wrong hash: it is "),
        (
            content()[..CHUNK + 9].to_vec(),
            Way::Right,
            "were asked for",
        ),
        (vec![], Way::Circles, "no connection: "),
        (vec![], Way::Refuses(401), "HF_TOKEN"),
        (vec![], Way::Refuses(404), "no such file or repository"),
    ] {
        let folder = place();
        let (address, _) = serve(bytes, way);
        let (code, out, err) = pulled(folder.path(), &address);
        assert_eq!((code, out.as_str()), (4, ""), "{way:?}: {err}");
        let starts = "error: the model tiny could not be fetched: model hub, o/tiny: ";
        assert!(
            err.starts_with(starts) && err.contains(says),
            "{way:?}: {err}"
        );
        assert_eq!(err.lines().count(), 1, "{way:?}: {err}");
        assert!(!left(folder.path()).contains(&"tiny.gguf".to_owned()));
    }
}

#[test]
fn a_fetch_that_was_killed_or_cut_goes_on_where_it_was() {
    for way in [Way::Stalls, Way::Cuts] {
        let folder = place();
        let partial = folder.path().join("models/.tiny.gguf.partial");
        let (address, ranges) = serve(content(), way);
        let mut child = pull(folder.path(), &address).spawn().unwrap();
        if way == Way::Stalls {
            let start = Instant::now();
            while ranges.lock().unwrap().len() < 2 {
                assert!(start.elapsed() < Duration::from_secs(60));
                std::thread::sleep(Duration::from_millis(20));
            }
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let code = output.status.code();
        assert_eq!(code, (way == Way::Cuts).then_some(4), "{way:?}");
        assert_eq!(left(folder.path()), [".tiny.gguf.partial"]);
        assert_eq!(fs::metadata(&partial).unwrap().len(), CHUNK as u64);

        let (address, ranges) = serve(content(), Way::Right);
        let (code, _, err) = pulled(folder.path(), &address);
        assert_eq!((code, err.as_str()), (0, ""), "{way:?}");
        assert_eq!(*ranges.lock().unwrap(), ["16777216-19999999"]);
        assert_eq!(left(folder.path()), ["tiny.gguf"]);
        let got = fs::read(folder.path().join("models/tiny.gguf")).unwrap();
        assert!(got == content(), "{way:?}: other bytes");
    }
}
