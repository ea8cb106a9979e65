//! The llama.cpp backend: GGUF models on the CPU or a GPU.

mod checkpoints;
mod ffi;
mod log;
mod session;
mod settings;
mod vocabulary;

pub use session::LlamaSession;
pub use settings::{CacheType, FlashAttention, LlamaSettings, physical_cores};

use crate::model::session::SessionError;
use crate::vocab::Vocabulary;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vocabulary::Tokenizer;

/// The binding that this is built with: what one version saved, another does not read.
const BINDING: &str = "llama-cpp-sys-2 =0.1.161";

/// An error of this backend.
fn backend(message: String) -> SessionError {
    SessionError::Backend {
        backend: "llama.cpp",
        message,
    }
}

/// Why a model could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum LlamaError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// llama.cpp does not load it.
    #[error("{path}: llama.cpp does not load it: {reason}")]
    Load {
        /// The file.
        path: PathBuf,
        /// What llama.cpp's log said.
        reason: String,
    },
}

/// A loaded model. Clones share it; the weights are freed with the last clone and session.
///
/// A file that does not come from a trusted source must have passed
/// the pre-check of `model::gguf` before: llama.cpp aborts the process on some malformed ones.
#[derive(Clone, Debug)]
pub struct LlamaModel {
    model: Arc<ffi::Model>,
    tokenizer: Arc<Tokenizer>,
    settings: Arc<LlamaSettings>,
    parameters: ffi::ContextParameters,
    fingerprint: u128,
}

impl LlamaModel {
    /// Loads a GGUF file. Weights are mapped, not copied, where they stay on the CPU.
    ///
    /// # Errors
    /// See [`LlamaError`].
    pub fn open(path: &Path, settings: LlamaSettings) -> Result<Self, LlamaError> {
        let file_print = fingerprint(path).map_err(|source| LlamaError::File {
            path: path.to_owned(),
            source,
        })?;
        let loaded = ffi::Model::load(path, settings.layers_on_gpu(), settings.repacks());
        let model = loaded.map_err(|failure| LlamaError::Load {
            path: path.to_owned(),
            reason: failure.0,
        })?;
        let model = Arc::new(model);
        let parameters = settings.parameters(model.trained_context());
        let mut hasher = SipHasher13::new();
        hasher.write_u128(file_print);
        hasher.write(BINDING.as_bytes());
        // Only what changes the meaning of saved memory: not threads, batch or capacity.
        hasher.write_u32(parameters.cache_type);
        hasher.write_i32(parameters.flash_attention);
        hasher.write_u8(u8::from(parameters.full_window));
        Ok(Self {
            tokenizer: Arc::new(Tokenizer::new(Arc::clone(&model))),
            model,
            settings: Arc::new(settings),
            parameters,
            fingerprint: hasher.finish128().as_u128(),
        })
    }

    /// The model's tokens.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.tokenizer.vocabulary()
    }

    /// Bytes of weights.
    pub fn weight_bytes(&self) -> u64 {
        self.model.weight_bytes()
    }

    /// Threads that sessions compute with.
    pub fn threads(&self) -> usize {
        usize::try_from(self.parameters.threads).unwrap_or(1)
    }

    /// Whether parts of a context can be dropped without a checkpoint. Recurrent, hybrid and
    /// sliding-window models cannot.
    pub fn can_be_cut(&self) -> bool {
        !self.model.is_recurrent()
            && (self.model.sliding_window() == 0 || self.parameters.full_window)
    }

    /// A new session with an empty context of its own: KV cache, compute buffers and threads.
    ///
    /// # Errors
    /// Where llama.cpp cannot make a context, mostly for want of memory.
    pub fn session(&self) -> Result<LlamaSession, SessionError> {
        LlamaSession::new(self.clone())
    }
}

/// Identifies a model file by its length and three samples of its bytes: the metadata at its
/// start, and weights in its middle and at its end, which a fine-tune changes.
fn fingerprint(path: &Path) -> std::io::Result<u128> {
    const SAMPLE: u64 = 1 << 20;
    let mut file = fs_err::File::open(path)?;
    let length = file.metadata()?.len();
    let mut hasher = SipHasher13::new();
    hasher.write_u64(length);
    for start in [0, length / 2, length.saturating_sub(SAMPLE)] {
        file.seek(SeekFrom::Start(start))?;
        let mut sample = Vec::new();
        (&mut file).take(SAMPLE).read_to_end(&mut sample)?;
        hasher.write(&sample);
    }
    Ok(hasher.finish128().as_u128())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binding_named_in_saved_files_is_the_one_that_is_built() {
        let manifest = include_str!("../../../Cargo.toml");
        let (name, version) = BINDING.split_once(' ').unwrap();
        assert!(
            manifest
                .lines()
                .any(|line| line.starts_with(name) && line.contains(version)),
            "{BINDING}"
        );
    }

    #[test]
    fn a_file_that_is_no_model_is_refused_with_llama_cpps_reason() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), b"not a model at all").unwrap();
        let error = LlamaModel::open(file.path(), LlamaSettings::default()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("magic"), "{text}");
        let error =
            LlamaModel::open(Path::new("/nowhere.gguf"), LlamaSettings::default()).unwrap_err();
        assert!(matches!(error, LlamaError::File { .. }), "{error}");
    }
}
