//! From the model hub, in ranges of bytes: so it can be taken up, stopped, and held in bounds.

use super::super::shown::shown;
use super::partial::Partial;
use super::types::{Progress, PullError, PullSettings, Reason, Stopped};
use hf_hub::progress::{DownloadEvent, ProgressEvent, ProgressHandler};
use hf_hub::{HFClient, HFClientSync, HFError};
use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How often a running request is looked at.
const POLL: Duration = Duration::from_millis(50);
/// How often a range is asked for.
const TRIES: u32 = 4;

/// What a request in the background tells.
enum News {
    /// So many bytes of the range have come.
    Bytes(u64),
    /// It is over.
    Done(Result<Vec<u8>, HFError>),
}

struct Told(Sender<News>);

impl ProgressHandler for Told {
    fn on_progress(&self, event: &ProgressEvent) {
        if let ProgressEvent::Download(DownloadEvent::Progress { files }) = event {
            let bytes = files.iter().map(|file| file.bytes_completed).sum();
            // Nobody listens any more where the fetch was given up.
            let _ = self.0.send(News::Bytes(bytes));
        }
    }
}

/// Appends what is missing in `partial`; `place` is repository, file and revision.
pub(super) fn fetch(
    place: [&str; 3],
    partial: &mut Partial,
    settings: &PullSettings,
    progress: &mut dyn Progress,
) -> Result<(), Stopped> {
    let [repo, file, _] = place;
    let unavailable = |error: HFError| Stopped::Source(reason(&error));
    let mut builder = HFClient::builder()
        .cache_enabled(false)
        .user_agent(concat!("snaffle/", env!("CARGO_PKG_VERSION")))
        // Of a single request; ranges are asked for again below.
        .retry_max_attempts(1);
    if let Some(endpoint) = &settings.hub_endpoint {
        builder = builder.endpoint(endpoint);
    }
    let client = builder.build_sync().map_err(unavailable)?;
    progress.stage(&format!("fetching {file} from {repo}"));
    let mut failures = 0;
    while partial.written() < partial.size() {
        let start = partial.written();
        let end = start
            .saturating_add(settings.chunk.max(1))
            .min(partial.size());
        let news = request(&client, place, start..end);
        match wait(&news, start, partial.size(), settings, progress)? {
            Ok(bytes) if bytes.len() as u64 == end - start => {
                partial.append(&bytes)?;
                progress.bytes(partial.written(), partial.size());
                failures = 0;
            }
            Ok(bytes) => {
                return Err(Stopped::unavailable(format!(
                    "it sent {} bytes where {} were asked for",
                    bytes.len(),
                    end - start
                )));
            }
            Err(error) => {
                failures += 1;
                let lasting = !matches!(error, HFError::Request { .. } | HFError::Xet { .. });
                if lasting || failures >= TRIES {
                    return Err(unavailable(error));
                }
                pause(settings, failures)?;
            }
        }
    }
    Ok(())
}

/// Asks for a range in the background.
fn request(client: &HFClientSync, place: [&str; 3], range: Range<u64>) -> Receiver<News> {
    let [repo, file, revision] = place.map(str::to_owned);
    let client = client.clone();
    let (sender, news) = channel();
    // Not joined: a request that hangs must not hold up whoever gives it up.
    std::thread::spawn(move || {
        let (owner, name) = hf_hub::split_id(&repo);
        let result = client
            .model(owner, name)
            .download_file_to_bytes()
            .filename(file)
            .revision(revision)
            .range(range)
            .progress(hf_hub::progress::Progress::new(Told(sender.clone())))
            .send();
        let _ = sender.send(News::Done(result.map(Vec::from)));
    });
    news
}

/// Waits for a range; stops where the user does, or where nothing comes for too long.
fn wait(
    news: &Receiver<News>,
    start: u64,
    total: u64,
    settings: &PullSettings,
    progress: &mut dyn Progress,
) -> Result<Result<Vec<u8>, HFError>, Stopped> {
    let mut last = Instant::now();
    loop {
        if settings.cancel.is_cancelled() {
            return Err(Stopped::All(PullError::Cancelled));
        }
        match news.recv_timeout(POLL) {
            Ok(News::Bytes(bytes)) => {
                last = Instant::now();
                progress.bytes(start.saturating_add(bytes).min(total), total);
            }
            Ok(News::Done(result)) => return Ok(result),
            Err(RecvTimeoutError::Timeout) if last.elapsed() < settings.patience => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(Stopped::unavailable(format!(
                    "nothing came for {} seconds",
                    settings.patience.as_secs()
                )));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Stopped::unavailable("the request ended without an answer"));
            }
        }
    }
}

/// Waits before a range is asked for again, longer each time.
fn pause(settings: &PullSettings, failures: u32) -> Result<(), Stopped> {
    let end = Instant::now() + settings.pause * 2_u32.saturating_pow(failures - 1);
    while Instant::now() < end {
        if settings.cancel.is_cancelled() {
            return Err(Stopped::All(PullError::Cancelled));
        }
        std::thread::sleep(POLL.min(settings.pause));
    }
    Ok(())
}

/// What went wrong, in one line.
fn reason(error: &HFError) -> Reason {
    let text = match error {
        HFError::EntryNotFound { path, .. } => format!("no such file or repository ({path})"),
        HFError::RepoNotFound { .. } => "no such repository".to_owned(),
        HFError::RevisionNotFound { revision, .. } => format!("no such revision ({revision})"),
        HFError::AuthRequired { .. } | HFError::Forbidden { .. } => {
            "access is refused; it may need an account that accepted the licence, and its token \
             in HF_TOKEN"
                .to_owned()
        }
        HFError::RateLimited { .. } => "too many requests; try again later".to_owned(),
        HFError::Http { context } if context.status.as_u16() == 416 => {
            "the file is shorter than it must be".to_owned()
        }
        HFError::Request { source, .. } => {
            // The innermost cause says most: "connection refused".
            let mut cause: &dyn std::error::Error = source;
            while let Some(inner) = cause.source() {
                cause = inner;
            }
            format!("no connection: {cause}")
        }
        other => other.to_string(),
    };
    Reason::Unavailable(shown(&text, 240))
}
