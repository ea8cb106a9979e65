//! The few llama.cpp calls that are used, made safe. All `unsafe` code of the crate is here.
//!
//! Only `llama-cpp-sys-2` is called: the wrapper crate above it ties a context to a borrow of its
//! model, cannot bound the logits that compute buffers are reserved for, and hides state
//! snapshots as bytes, all of which a session needs.
//!
//! What must hold, and why it does:
//! - A model outlives its contexts: a [`Context`] holds an `Arc` of its [`Model`].
//! - A model is never changed after loading, except that making a context may touch it: that
//!   takes a lock.
//! - Everything that changes a context takes `&mut self`; a slice of its logits borrows it.
//! - llama.cpp aborts on what its assertions refuse, so lengths and positions are checked here.
#![expect(unsafe_code, reason = "llama.cpp is a C library")]

use super::log::{self, Level};
use llama_cpp_sys_2 as sys;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Once};

/// The one sequence of a context.
const SEQUENCE: sys::llama_seq_id = 0;

/// A failed call, with what llama.cpp's log said.
#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

/// Starts llama.cpp once per process and takes its log.
fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // SAFETY: the callback is a plain function without captured state, and lives forever;
        // both calls are made once, before any other call.
        unsafe {
            sys::llama_log_set(Some(take_log), std::ptr::null_mut());
            sys::llama_backend_init();
        }
    });
}

/// Receives a piece of llama.cpp's log.
unsafe extern "C" fn take_log(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    let level = match level {
        sys::GGML_LOG_LEVEL_WARN | sys::GGML_LOG_LEVEL_ERROR => Level::Grave,
        sys::GGML_LOG_LEVEL_CONT => Level::Continued,
        _ => Level::Quiet,
    };
    if level == Level::Quiet || text.is_null() {
        log::record(Level::Quiet, "");
        return;
    }
    // SAFETY: llama.cpp passes a NUL-terminated string that lives during the call.
    let text = unsafe { CStr::from_ptr(text) };
    log::record(level, &text.to_string_lossy());
}

/// Whether this build can put layers on a GPU that is there.
pub(super) fn gpu_available() -> bool {
    start();
    // SAFETY: no arguments; the backend is initialised.
    unsafe { sys::llama_supports_gpu_offload() }
}

/// What a token is, as llama.cpp's attributes say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes(sys::llama_token_attr);

impl Attributes {
    pub(super) fn is_normal(self) -> bool {
        self.0 & sys::LLAMA_TOKEN_ATTR_NORMAL != 0
    }
    pub(super) fn is_byte(self) -> bool {
        self.0 & sys::LLAMA_TOKEN_ATTR_BYTE != 0
    }
    pub(super) fn is_user_defined(self) -> bool {
        self.0 & sys::LLAMA_TOKEN_ATTR_USER_DEFINED != 0
    }
    pub(super) fn is_special(self) -> bool {
        let special = sys::LLAMA_TOKEN_ATTR_CONTROL
            | sys::LLAMA_TOKEN_ATTR_UNKNOWN
            | sys::LLAMA_TOKEN_ATTR_UNUSED;
        self.0 & special != 0
    }
}

/// Loaded weights and vocabulary.
#[derive(Debug)]
pub(super) struct Model {
    raw: NonNull<sys::llama_model>,
    vocab: NonNull<sys::llama_vocab>,
    /// Held while a context is made, which may change the model.
    making_context: Mutex<()>,
}

// SAFETY: a loaded model is only read, except under `making_context`; llama.cpp ties it to no
// thread.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

impl Model {
    /// Loads a file. The caller has checked that it is a well-formed GGUF file: llama.cpp aborts
    /// the process on some malformed ones.
    pub(super) fn load(path: &Path, gpu_layers: i32, repack: bool) -> Result<Self, Failure> {
        start();
        log::clear();
        let text = path
            .to_str()
            .and_then(|path| CString::new(path).ok())
            .ok_or_else(|| {
                Failure("llama.cpp cannot open a path that is not UTF-8 text".to_owned())
            })?;
        // SAFETY: the parameters are llama.cpp's own defaults (null pointers, valid enumerations)
        // with a number and a flag changed; the path is NUL-terminated and outlives the call.
        let raw = unsafe {
            let mut params = sys::llama_model_default_params();
            params.n_gpu_layers = gpu_layers;
            params.use_extra_bufts = repack;
            sys::llama_model_load_from_file(text.as_ptr(), params)
        };
        let raw = NonNull::new(raw).ok_or_else(|| {
            Failure(log::reason(
                "llama.cpp could not load the file and gave no reason",
            ))
        })?;
        // SAFETY: the model is valid; the vocabulary it returns is part of it.
        let vocab = unsafe { sys::llama_model_get_vocab(raw.as_ptr()) };
        let Some(vocab) = NonNull::new(vocab.cast_mut()) else {
            // SAFETY: just loaded, not used anywhere else.
            unsafe { sys::llama_model_free(raw.as_ptr()) };
            return Err(Failure("the model has no vocabulary".to_owned()));
        };
        Ok(Self {
            raw,
            vocab,
            making_context: Mutex::new(()),
        })
    }

    /// Number of tokens of the vocabulary.
    pub(super) fn token_count(&self) -> usize {
        // SAFETY: `vocab` belongs to the live model.
        let count = unsafe { sys::llama_vocab_n_tokens(self.vocab.as_ptr()) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Whether `token` exists; llama.cpp throws, which aborts, on others.
    fn known(&self, token: u32) -> Option<sys::llama_token> {
        if (token as usize) < self.token_count() {
            i32::try_from(token).ok()
        } else {
            None
        }
    }

    /// What `token` is.
    pub(super) fn attributes(&self, token: u32) -> Attributes {
        let Some(token) = self.known(token) else {
            return Attributes(0);
        };
        // SAFETY: the token exists.
        Attributes(unsafe { sys::llama_vocab_get_attr(self.vocab.as_ptr(), token) })
    }

    /// Whether `token` ends a generation.
    pub(super) fn ends_generation(&self, token: u32) -> bool {
        let Some(token) = self.known(token) else {
            return false;
        };
        // SAFETY: the token exists.
        unsafe { sys::llama_vocab_is_eog(self.vocab.as_ptr(), token) }
    }

    /// What `token` spells; the names of special tokens included.
    pub(super) fn piece(&self, token: u32) -> Vec<u8> {
        let Some(token) = self.known(token) else {
            return Vec::new();
        };
        let mut buffer = vec![0_u8; 64];
        for _ in 0..2 {
            let room = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
            // SAFETY: the token exists, and at most `room` bytes of the buffer are written.
            let written = unsafe {
                sys::llama_token_to_piece(
                    self.vocab.as_ptr(),
                    token,
                    buffer.as_mut_ptr().cast::<c_char>(),
                    room,
                    0,
                    true,
                )
            };
            match usize::try_from(written) {
                Ok(length) => {
                    buffer.truncate(length);
                    return buffer;
                }
                Err(_) => buffer.resize(written.unsigned_abs() as usize, 0),
            }
        }
        Vec::new()
    }

    /// llama.cpp's tokens of valid UTF-8 `text`, nothing added.
    pub(super) fn tokenize(&self, text: &str, special: bool) -> Result<Vec<u32>, Failure> {
        let length = i32::try_from(text.len())
            .map_err(|_| Failure("a text of more than 2 GiB cannot be tokenised".to_owned()))?;
        let mut tokens = vec![0_i32; text.len() / 2 + 8];
        for _ in 0..2 {
            let room = i32::try_from(tokens.len()).unwrap_or(i32::MAX);
            // SAFETY: text and length belong together; at most `room` tokens are written.
            let written = unsafe {
                sys::llama_tokenize(
                    self.vocab.as_ptr(),
                    text.as_ptr().cast::<c_char>(),
                    length,
                    tokens.as_mut_ptr(),
                    room,
                    false,
                    special,
                )
            };
            if written == i32::MIN {
                break;
            }
            match usize::try_from(written) {
                Ok(count) => {
                    tokens.truncate(count);
                    return Ok(tokens
                        .into_iter()
                        .filter_map(|t| u32::try_from(t).ok())
                        .collect());
                }
                Err(_) => tokens.resize(written.unsigned_abs() as usize, 0),
            }
        }
        Err(Failure("the text has too many tokens".to_owned()))
    }

    /// The token that begins a sequence, where the model wants one.
    pub(super) fn begin(&self) -> Option<u32> {
        // SAFETY: `vocab` belongs to the live model.
        let (wanted, token) = unsafe {
            (
                sys::llama_vocab_get_add_bos(self.vocab.as_ptr()),
                sys::llama_vocab_bos(self.vocab.as_ptr()),
            )
        };
        u32::try_from(token).ok().filter(|_| wanted)
    }

    /// Whether the memory, or a part of it, is one state that cannot be cut.
    pub(super) fn is_recurrent(&self) -> bool {
        // SAFETY: the model is live.
        unsafe {
            sys::llama_model_is_recurrent(self.raw.as_ptr())
                || sys::llama_model_is_hybrid(self.raw.as_ptr())
        }
    }

    /// Width of the sliding attention window in tokens; 0: none.
    pub(super) fn sliding_window(&self) -> usize {
        // SAFETY: the model is live.
        usize::try_from(unsafe { sys::llama_model_n_swa(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// Tokens of context that the model was trained on.
    pub(super) fn trained_context(&self) -> usize {
        // SAFETY: the model is live.
        usize::try_from(unsafe { sys::llama_model_n_ctx_train(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// Bytes of weights.
    pub(super) fn weight_bytes(&self) -> u64 {
        // SAFETY: the model is live.
        unsafe { sys::llama_model_size(self.raw.as_ptr()) }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: contexts hold an `Arc` of the model, so none is left.
        unsafe { sys::llama_model_free(self.raw.as_ptr()) };
    }
}

/// Numbers that a context is made with; already validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ContextParameters {
    pub(super) context: u32,
    pub(super) batch: u32,
    pub(super) threads: i32,
    /// -1 automatic, 0 off, 1 on.
    pub(super) flash_attention: i32,
    /// A `ggml_type` for keys and values.
    pub(super) cache_type: u32,
    pub(super) full_window: bool,
}

/// `ggml_type` numbers for the cache.
pub(super) const CACHE_F16: u32 = sys::GGML_TYPE_F16;
pub(super) const CACHE_Q8: u32 = sys::GGML_TYPE_Q8_0;
pub(super) const CACHE_Q4: u32 = sys::GGML_TYPE_Q4_0;

/// Which part of a context's memory a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// Only what cannot be cut: recurrent states and sliding windows.
    Uncuttable,
}

impl Part {
    fn flags(self) -> sys::llama_state_seq_flags {
        match self {
            Self::Whole => 0,
            Self::Uncuttable => 1, // LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY, a macro bindgen skips
        }
    }
}

/// A context of one sequence: KV cache, compute buffers, threads and the last logits.
#[derive(Debug)]
pub(super) struct Context {
    raw: NonNull<sys::llama_context>,
    batch: sys::llama_batch,
    batch_room: usize,
    threads: Option<NonNull<sys::ggml_threadpool>>,
    logits: Option<NonNull<f32>>,
    capacity: usize,
    model: Arc<Model>,
}

// SAFETY: llama.cpp ties a context to no thread, and everything that touches it takes `&mut self`
// or only reads memory that such calls write.
unsafe impl Send for Context {}

impl Context {
    pub(super) fn new(model: &Arc<Model>, wanted: ContextParameters) -> Result<Self, Failure> {
        let guard = model.making_context.lock();
        log::clear();
        // SAFETY: the parameters are llama.cpp's defaults with numbers changed; the model lives
        // as long as the context, which holds an `Arc` of it.
        let raw = unsafe {
            let mut params = sys::llama_context_default_params();
            params.n_ctx = wanted.context;
            params.n_batch = wanted.batch;
            params.n_ubatch = wanted.batch;
            params.n_seq_max = 1;
            // Only the last token's logits are ever asked for: without this, buffers for a whole
            // batch of them are reserved (512 × 262,144 × 4 bytes for Gemma).
            params.n_outputs_max = 1;
            params.n_threads = wanted.threads;
            params.n_threads_batch = wanted.threads;
            params.flash_attn_type = wanted.flash_attention;
            params.type_k = wanted.cache_type as sys::ggml_type;
            params.type_v = wanted.cache_type as sys::ggml_type;
            params.swa_full = wanted.full_window;
            params.kv_unified = true;
            params.no_perf = true;
            sys::llama_init_from_model(model.raw.as_ptr(), params)
        };
        drop(guard);
        let raw = NonNull::new(raw).ok_or_else(|| {
            Failure(log::reason(
                "llama.cpp could not make a context and gave no reason",
            ))
        })?;
        // SAFETY: a new threadpool of a valid size, attached to the context it is freed after.
        // Without one llama.cpp starts and joins its threads for every batch.
        let threads = unsafe {
            let mut params = sys::ggml_threadpool_params_default(wanted.threads);
            let pool = NonNull::new(sys::ggml_threadpool_new(&raw mut params));
            if let Some(pool) = pool {
                sys::llama_attach_threadpool(raw.as_ptr(), pool.as_ptr(), std::ptr::null_mut());
            }
            pool
        };
        let room = i32::try_from(wanted.batch).unwrap_or(i32::MAX);
        // SAFETY: allocates arrays for `room` tokens of one sequence each.
        let batch = unsafe { sys::llama_batch_init(room, 0, 1) };
        // SAFETY: the context is live.
        let capacity = unsafe { sys::llama_n_ctx(raw.as_ptr()) } as usize;
        Ok(Self {
            raw,
            batch,
            batch_room: wanted.batch as usize,
            threads,
            logits: None,
            capacity,
            model: Arc::clone(model),
        })
    }

    /// Most tokens that it holds.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Most tokens of one [`decode`](Self::decode).
    pub(super) fn batch_room(&self) -> usize {
        self.batch_room
    }

    fn memory(&self) -> sys::llama_memory_t {
        // SAFETY: the context is live; the memory is part of it.
        unsafe { sys::llama_get_memory(self.raw.as_ptr()) }
    }

    /// Evaluates `tokens` at positions from `start`; with `logits`, those after the last are
    /// ready afterwards. What is in the memory after a failure is unknown.
    pub(super) fn decode(
        &mut self,
        tokens: &[u32],
        start: usize,
        logits: bool,
    ) -> Result<(), Failure> {
        self.logits = None;
        let end = start + tokens.len();
        if tokens.is_empty() || tokens.len() > self.batch_room || end > self.capacity {
            return Err(Failure(format!(
                "a batch of {} tokens at {start} does not fit",
                tokens.len()
            )));
        }
        for (at, &token) in tokens.iter().enumerate() {
            let id = self
                .model
                .known(token)
                .ok_or_else(|| Failure(format!("the model has no token {token}")))?;
            let position = i32::try_from(start + at)
                .map_err(|_| Failure("positions beyond 2^31".to_owned()))?;
            // SAFETY: `at` is below the room that all five arrays were allocated with.
            unsafe {
                self.batch.token.add(at).write(id);
                self.batch.pos.add(at).write(position);
                self.batch.n_seq_id.add(at).write(1);
                (*self.batch.seq_id.add(at)).write(SEQUENCE);
                let wanted = logits && at + 1 == tokens.len();
                self.batch.logits.add(at).write(i8::from(wanted));
            }
        }
        self.batch.n_tokens = i32::try_from(tokens.len()).unwrap_or(i32::MAX);
        log::clear();
        // SAFETY: the first `n_tokens` entries of the batch are initialised.
        let code = unsafe { sys::llama_decode(self.raw.as_ptr(), self.batch) };
        if code != 0 {
            return Err(Failure(log::reason(&format!(
                "decode failed with code {code}"
            ))));
        }
        if logits {
            // SAFETY: the context is live and the last entry of the batch asked for logits; -1
            // is the last output.
            let row = unsafe { sys::llama_get_logits_ith(self.raw.as_ptr(), -1) };
            self.logits = NonNull::new(row);
            if self.logits.is_none() {
                return Err(Failure(log::reason("no logits came out")));
            }
        }
        Ok(())
    }

    /// The logits of the last [`decode`](Self::decode) that asked for them; empty where none did.
    pub(super) fn logits(&self) -> &[f32] {
        match self.logits {
            // SAFETY: llama.cpp keeps one row of the vocabulary's length there until the next
            // decode, which needs `&mut self` and resets the pointer.
            Some(row) => unsafe {
                std::slice::from_raw_parts(row.as_ptr(), self.model.token_count())
            },
            None => &[],
        }
    }

    /// Forgets everything from position `from` on. `false`: the memory cannot do that, and is
    /// unchanged.
    pub(super) fn cut(&mut self, from: usize) -> bool {
        self.logits = None;
        let Ok(from) = i32::try_from(from) else {
            return false;
        };
        // SAFETY: memory and sequence exist.
        unsafe { sys::llama_memory_seq_rm(self.memory(), SEQUENCE, from, -1) }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.logits = None;
        // SAFETY: the memory exists. Its buffers need no wiping: positions say what is valid.
        unsafe { sys::llama_memory_clear(self.memory(), false) };
    }

    /// The first position that is still remembered everywhere, sliding windows included.
    pub(super) fn first_position(&self) -> usize {
        // SAFETY: memory and sequence exist.
        let first = unsafe { sys::llama_memory_seq_pos_min(self.memory(), SEQUENCE) };
        usize::try_from(first).unwrap_or(0)
    }

    /// A snapshot of the memory.
    pub(super) fn snapshot(&mut self, part: Part) -> Result<Vec<u8>, Failure> {
        log::clear();
        // SAFETY: context and sequence exist.
        let size =
            unsafe { sys::llama_state_seq_get_size_ext(self.raw.as_ptr(), SEQUENCE, part.flags()) };
        let mut bytes = vec![0_u8; size];
        // SAFETY: at most `size` bytes are written.
        let written = unsafe {
            sys::llama_state_seq_get_data_ext(
                self.raw.as_ptr(),
                bytes.as_mut_ptr(),
                size,
                SEQUENCE,
                part.flags(),
            )
        };
        if size == 0 || written != size {
            return Err(Failure(log::reason("the memory could not be copied")));
        }
        Ok(bytes)
    }

    /// Puts a snapshot back. The bytes must be what [`snapshot`](Self::snapshot) gave for the same
    /// model, build and parameters: callers check length and checksum of what was on disk. After
    /// a failure the memory is empty or partly so: clear it.
    pub(super) fn restore(&mut self, bytes: &[u8], part: Part) -> Result<(), Failure> {
        self.logits = None;
        log::clear();
        // SAFETY: llama.cpp reads at most `bytes.len()` bytes and refuses shapes that do not fit.
        let read = unsafe {
            sys::llama_state_seq_set_data_ext(
                self.raw.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                SEQUENCE,
                part.flags(),
            )
        };
        if read == bytes.len() && read > 0 {
            Ok(())
        } else {
            Err(Failure(log::reason(
                "the snapshot does not fit this context",
            )))
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: each was made in `new` and is freed once; the context before the threads it
        // uses.
        unsafe {
            sys::llama_batch_free(self.batch);
            sys::llama_free(self.raw.as_ptr());
            if let Some(threads) = self.threads {
                sys::ggml_threadpool_free(threads.as_ptr());
            }
        }
    }
}
