//! From `--model` to something that writes: the file is found, checked, loaded, and its evaluated
//! prefix taken up from the last run.

use super::error::Failure;
use super::exit::Exit;
use super::settings::Settings;
use crate::decode::SessionGenerator;
use crate::mask::{Lexicon, MaskStore};
use crate::model::manifest::TemplateSource;
use crate::model::{
    Cancel, ChatTemplate, Format, Generator, GgufInfo, Located, Manifest, RandomSession, Session,
    inspect, locate, verify,
};
use crate::vocab::{TokenId, Vocabulary};
use indicatif::ProgressBar;
use siphasher::sip::SipHasher13;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of the manifest up to this size are hashed before every use (under a tenth of a second
/// for the tiny ones); larger ones when they are fetched, and by `snaffle model verify`.
const HASHED_UP_TO: u64 = 512 << 20;

/// Prefix files kept in a folder, the oldest deleted first: a few megabytes each for tiny models.
const PREFIXES: usize = 16;

/// A loaded model.
pub struct Engine {
    /// What writes.
    pub generator: SessionGenerator,
    /// What the file says of itself.
    pub info: GgufInfo,
    located: Located,
    lexicon: Arc<Lexicon>,
    store: Arc<MaskStore>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("located", &self.located)
            .finish_non_exhaustive()
    }
}

/// The manifest that ships, with the one in the folder of models over it.
///
/// # Errors
/// A manifest that is wrong.
pub fn manifest(models_dir: &Path) -> Result<Manifest, Failure> {
    let own = models_dir.join("models.toml");
    Ok(Manifest::with_user_file(own.is_file().then_some(&own))?)
}

/// The name of no model: random logits over bytes. What the harness then does, it does for any
/// model.
pub const RANDOM: &str = "random";

/// Tokens that random logits have room for: bytes, in their case.
const RANDOM_CONTEXT: usize = 1 << 16;

impl Engine {
    /// Random logits, for trying out tools and tasks without a model.
    fn without_model(settings: &Settings) -> Self {
        let vocabulary = Arc::new(Vocabulary::of_bytes());
        let capacity = settings.context.unwrap_or(RANDOM_CONTEXT);
        let session = RandomSession::new(Arc::clone(&vocabulary), capacity, settings.sampling.seed);
        let lexicon = Arc::new(Lexicon::new(vocabulary));
        let store = Arc::new(MaskStore::new(settings.mask_store));
        let format = Box::new(ChatTemplate::plain());
        let generator = generator(
            RANDOM.to_owned(),
            Box::new(session),
            format,
            &lexicon,
            &store,
        );
        Self {
            generator,
            info: GgufInfo::default(),
            located: Located {
                path: PathBuf::from(RANDOM),
                entry: None,
            },
            lexicon,
            store,
        }
    }

    /// Finds, checks and loads the model; progress in a prompt is told to `progress`.
    ///
    /// # Errors
    /// A model that is missing, damaged, not the manifest's, or that the backend does not load.
    pub fn open(settings: &Settings, progress: &ProgressBar) -> Result<Self, Failure> {
        if settings.model == RANDOM {
            return Ok(Self::without_model(settings));
        }
        let manifest = manifest(&settings.models_dir)?;
        let located = locate(Some(&settings.model), &settings.models_dir, &manifest)?;
        let info = inspect(&located.path)?;
        check_hash(&located)?;
        check_context(settings, &info)?;
        let format = template(&located, &info)?;
        let name = name_of(&located);
        let session = session(&located.path, settings)?;
        let lexicon = Arc::new(Lexicon::new(Arc::clone(session.vocabulary())));
        let store = Arc::new(MaskStore::new(settings.mask_store));
        let mut generator = generator(name, session, format, &lexicon, &store);
        let bar = progress.clone();
        generator.on_progress(Some(Box::new(move |done, total| {
            if done >= total {
                return bar.finish_and_clear();
            }
            if bar.is_finished() {
                bar.reset();
            }
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        })));
        Ok(Self {
            generator,
            info,
            located,
            lexicon,
            store,
        })
    }

    /// The model's name: the manifest's, or the file's.
    pub fn name(&self) -> String {
        name_of(&self.located)
    }

    /// As [`SessionGenerator::bytes_held`].
    pub fn bytes_held(&self) -> usize {
        self.generator.bytes_held()
    }

    /// Strength of calibrated choice that was fitted for it.
    pub fn alpha(&self) -> Option<f64> {
        self.located.entry.as_ref()?.alpha
    }

    /// How much likelier a call is taken to be, where that was fitted for it.
    pub fn call_bias(&self) -> Option<f64> {
        self.located.entry.as_ref()?.call_bias
    }

    /// Most examples that serve it, where that was measured.
    pub fn examples(&self) -> Option<usize> {
        self.located.entry.as_ref()?.examples
    }

    /// The same grammar, vocabulary and template over random logits: what chance reaches.
    ///
    /// # Errors
    /// A template that cannot be read.
    pub fn random(&self, seed: u64) -> Result<SessionGenerator, Failure> {
        let vocabulary = Arc::clone(self.lexicon.vocabulary());
        let session = RandomSession::new(vocabulary, self.generator.capacity(), seed);
        let format = template(&self.located, &self.info)?;
        Ok(generator(
            "random logits".to_owned(),
            Box::new(session),
            format,
            &self.lexicon,
            &self.store,
        ))
    }

    /// Takes up the prefix that a run with the same settings left.
    ///
    /// # Errors
    /// A file that exists and cannot be read.
    pub fn load_prefix(&mut self, settings: &Settings) -> Result<(), Failure> {
        if let Some(path) = self.prefix_path(settings) {
            self.generator.load_prefix(&path)?;
        }
        Ok(())
    }

    /// Leaves the evaluated prefix for the next run.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save_prefix(&mut self, settings: &Settings) -> Result<(), Failure> {
        let Some(path) = self.prefix_path(settings) else {
            return Ok(());
        };
        if !self.generator.has_prefix() {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
            drop_oldest(folder, PREFIXES)?;
        }
        self.generator.save_prefix(&path)?;
        Ok(())
    }

    /// One file for a model and the tools that its prompts may describe.
    fn prefix_path(&self, settings: &Settings) -> Option<PathBuf> {
        let folder = settings.prefix_cache.as_ref()?;
        if settings.model == RANDOM {
            return None;
        }
        let mut hasher = SipHasher13::new();
        self.located.path.hash(&mut hasher);
        settings.house.hash(&mut hasher);
        settings.tools.hash(&mut hasher);
        settings.assistant.hash(&mut hasher);
        settings.tools_in_prompt.hash(&mut hasher);
        let hash = hasher.finish();
        let stem = self.located.path.file_stem()?.to_string_lossy();
        Some(folder.join(format!("{stem}-{hash:016x}.prefix")))
    }
}

/// A model's vocabulary and tokeniser, for what is about tokens and needs no logits.
pub struct Words {
    /// The model's name: the manifest's, or the file's.
    pub name: String,
    /// Its vocabulary.
    pub lexicon: Arc<Lexicon>,
    session: Box<dyn Session>,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Words")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Words {
    /// Finds, checks and loads `model`, a name in the manifest or a file.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open(model: &str, settings: &Settings) -> Result<Self, Failure> {
        let manifest = manifest(&settings.models_dir)?;
        let located = locate(Some(model), &settings.models_dir, &manifest)?;
        inspect(&located.path)?;
        check_hash(&located)?;
        // Nothing will be evaluated: the smallest context there is.
        let settings = Settings {
            context: Some(1),
            threads: Some(1),
            gpu_layers: Some(0),
            ..settings.clone()
        };
        let session = session(&located.path, &settings)?;
        Ok(Self {
            name: name_of(&located),
            lexicon: Arc::new(Lexicon::new(Arc::clone(session.vocabulary()))),
            session,
        })
    }

    /// The canonical tokens of `text`, none of them special.
    ///
    /// # Errors
    /// Where the tokeniser fails.
    pub fn tokenize(&self, text: &str) -> Result<Vec<TokenId>, Failure> {
        Ok(self.session.tokenize(text.as_bytes(), false)?)
    }
}

fn name_of(located: &Located) -> String {
    match &located.entry {
        Some(entry) => entry.name.clone(),
        None => {
            let stem = located.path.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        }
    }
}

fn generator(
    name: String,
    session: Box<dyn Session>,
    format: Box<dyn Format>,
    lexicon: &Arc<Lexicon>,
    store: &Arc<MaskStore>,
) -> SessionGenerator {
    let (lexicon, store) = (Arc::clone(lexicon), Arc::clone(store));
    let limits = crate::mask::Limits::default();
    SessionGenerator::new(name, session, format, lexicon, store, limits)
}

/// A file of the manifest must be what the manifest says.
fn check_hash(located: &Located) -> Result<(), Failure> {
    let Some(entry) = &located.entry else {
        return Ok(());
    };
    let length = fs_err::metadata(&located.path)?.len();
    if length == entry.size && length > HASHED_UP_TO {
        return Ok(());
    }
    let folder = located.path.parent().unwrap_or(Path::new(""));
    verify(entry, folder, &Cancel::default(), &mut ())?;
    Ok(())
}

/// That the context is none that the model was not trained for: beyond it a model writes nonsense,
/// and its cache may take all of the memory.
fn check_context(settings: &Settings, info: &GgufInfo) -> Result<(), Failure> {
    match (settings.context, info.context_length) {
        (Some(context), Some(trained)) if context as u64 > trained => {
            let message = format!(
                "a context of {context} tokens is more than the {trained} that the model was \
                 trained for"
            );
            Err(Failure::new(Exit::Config, message).hint(format!("--context {trained}, or less")))
        }
        _ => Ok(()),
    }
}

fn template(located: &Located, info: &GgufInfo) -> Result<Box<dyn Format>, Failure> {
    let plain = located
        .entry
        .as_ref()
        .is_some_and(|entry| entry.template == TemplateSource::Plain);
    let template = match &info.chat_template {
        Some(text) if !plain => {
            let bos = info.bos.as_deref().unwrap_or_default();
            let eos = info.eos.as_deref().unwrap_or_default();
            ChatTemplate::from_source(text, bos, eos).map_err(|error| {
                let path = located.path.display();
                Failure::new(Exit::Model, format!("{path}: the chat template {error}"))
            })?
        }
        _ => ChatTemplate::plain(),
    };
    Ok(Box::new(template))
}

#[cfg(feature = "llama")]
fn session(path: &Path, settings: &Settings) -> Result<Box<dyn Session>, Failure> {
    use crate::model::llama::{LlamaModel, LlamaSettings};
    let llama = LlamaSettings {
        threads: settings.threads,
        context: settings.context,
        gpu_layers: settings.gpu_layers,
        ..LlamaSettings::default()
    };
    let model = LlamaModel::open(path, llama)
        .map_err(|error| Failure::new(Exit::Model, error.to_string()))?;
    Ok(Box::new(model.session()?))
}

#[cfg(not(feature = "llama"))]
fn session(path: &Path, _settings: &Settings) -> Result<Box<dyn Session>, Failure> {
    let message = format!(
        "{}: this program was built without a backend that runs models",
        path.display()
    );
    Err(Failure::new(Exit::Model, message).hint("build it with the feature `llama`"))
}

/// Deletes the oldest files of `folder` until fewer than `most` are left.
fn drop_oldest(folder: &Path, most: usize) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        if entry
            .path()
            .extension()
            .is_some_and(|ending| ending == "prefix")
        {
            files.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    files.sort();
    let surplus = (files.len() + 1).saturating_sub(most);
    for (_, path) in files.into_iter().take(surplus) {
        fs_err::remove_file(path)?;
    }
    Ok(())
}
