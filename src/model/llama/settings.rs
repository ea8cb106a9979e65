//! How a model is loaded and run, with defaults that suit the machine.

use super::ffi;

/// Whether fused attention kernels are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlashAttention {
    /// Where the backend supports it.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Always; loading fails where it is not supported.
    On,
}

/// How keys and values of the context are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheType {
    /// 16-bit floats.
    #[default]
    F16,
    /// About half of that; needs flash attention.
    Q8,
    /// About a quarter; needs flash attention and costs accuracy.
    Q4,
}

/// Settings of the llama.cpp backend. `None` means "choose for this machine and model".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlamaSettings {
    /// Threads that compute; default: the physical cores that this process may use.
    pub threads: Option<usize>,
    /// Tokens of context, rounded up to a multiple of 256; default: the model's own, at most
    /// [`DEFAULT_CONTEXT`](Self::DEFAULT_CONTEXT).
    pub context: Option<usize>,
    /// Layers computed on a GPU; default: all where a GPU backend is compiled in and a GPU is
    /// there, else none.
    pub gpu_layers: Option<u32>,
    /// Let llama.cpp rearrange weights for the CPU's fastest kernels; default: unless the CPU has
    /// AMX. Rearranged weights then run on AMX tiles alone, and under some hypervisors these lose
    /// their state when a thread is moved, which kills the process (SIGILL, seen under nested
    /// virtualisation, where llama.cpp's own check for AMX succeeds).
    pub repack: Option<bool>,
    /// Prompt tokens evaluated at a time, which is also how often progress is told and how long a
    /// cancellation may take; default: 512.
    pub batch: Option<usize>,
    /// Fused attention.
    pub flash_attention: FlashAttention,
    /// How the context is stored.
    pub cache_type: CacheType,
    /// Keep the whole context of sliding-window layers too: more memory and time, but any part
    /// of the context can be dropped without a checkpoint.
    pub full_window: bool,
    /// Most checkpoints kept (of models whose memory cannot be cut).
    pub checkpoints: usize,
    /// Most bytes of checkpoints kept; the newest is kept in any case.
    pub checkpoint_bytes: usize,
}

impl LlamaSettings {
    /// Most tokens of context where none is asked for: enough for a turn of an agent, and 90 MiB
    /// of cache for the tiniest models.
    pub const DEFAULT_CONTEXT: usize = 4096;

    /// The numbers to make a context with.
    pub(super) fn parameters(&self, trained_context: usize) -> ffi::ContextParameters {
        let context = self.context.unwrap_or_else(|| {
            let trained = if trained_context == 0 {
                Self::DEFAULT_CONTEXT
            } else {
                trained_context
            };
            trained.min(Self::DEFAULT_CONTEXT)
        });
        let context = bounded(context, 1 << 24).next_multiple_of(256);
        let threads = bounded(self.threads.unwrap_or_else(physical_cores), 512);
        let cache_type = match self.cache_type {
            CacheType::F16 => ffi::CACHE_F16,
            CacheType::Q8 => ffi::CACHE_Q8,
            CacheType::Q4 => ffi::CACHE_Q4,
        };
        ffi::ContextParameters {
            context,
            batch: bounded(self.batch.unwrap_or(512), 4096).min(context),
            threads: threads as i32,
            flash_attention: match self.flash_attention {
                FlashAttention::Auto => -1,
                FlashAttention::Off => 0,
                FlashAttention::On => 1,
            },
            cache_type,
            full_window: self.full_window,
        }
    }

    /// Whether weights are rearranged.
    pub(super) fn repacks(&self) -> bool {
        self.repack.unwrap_or_else(|| !has_amx())
    }

    /// Layers to put on a GPU.
    pub(super) fn layers_on_gpu(&self) -> i32 {
        match self.gpu_layers {
            Some(layers) => i32::try_from(layers).unwrap_or(i32::MAX),
            None if ffi::gpu_available() => i32::MAX,
            None => 0,
        }
    }
}

/// Whether the CPU has matrix tiles (Intel AMX).
#[cfg(target_arch = "x86_64")]
fn has_amx() -> bool {
    // CPUID leaf 7 exists on every processor that has AVX2, and says nothing where it does not.
    std::arch::x86_64::__cpuid(0).eax >= 7
        && std::arch::x86_64::__cpuid_count(7, 0).edx & (1 << 24) != 0
}

/// Whether the CPU has matrix tiles (Intel AMX).
#[cfg(not(target_arch = "x86_64"))]
fn has_amx() -> bool {
    false
}

impl Default for LlamaSettings {
    fn default() -> Self {
        Self {
            threads: None,
            context: None,
            gpu_layers: None,
            repack: None,
            batch: None,
            flash_attention: FlashAttention::default(),
            cache_type: CacheType::default(),
            full_window: false,
            checkpoints: 4,
            checkpoint_bytes: 64 << 20,
        }
    }
}

/// `value` between 1 and `most`.
fn bounded(value: usize, most: u32) -> u32 {
    u32::try_from(value).unwrap_or(most).clamp(1, most)
}

/// Physical cores that this process may use: siblings of one core compete for its arithmetic
/// units, which evaluating a model keeps busy.
pub fn physical_cores() -> usize {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    usable.min(cores_of_the_machine().unwrap_or(usable)).max(1)
}

/// Distinct cores as Linux lists them; `None` elsewhere.
fn cores_of_the_machine() -> Option<usize> {
    let mut cores = std::collections::HashSet::new();
    for entry in fs_err::read_dir("/sys/devices/system/cpu").ok()? {
        let folder = entry.ok()?.path().join("topology");
        let read = |name: &str| fs_err::read_to_string(folder.join(name)).ok();
        if let (Some(package), Some(core)) = (read("physical_package_id"), read("core_id")) {
            cores.insert((package, core));
        }
    }
    (!cores.is_empty()).then_some(cores.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bounded_and_have_defaults() {
        let default = LlamaSettings::default().parameters(8192);
        assert_eq!((default.context, default.batch), (4096, 512));
        assert!(default.threads >= 1);
        assert_eq!(LlamaSettings::default().parameters(2048).context, 2048);
        assert_eq!(LlamaSettings::default().parameters(0).context, 4096);
        let odd = LlamaSettings {
            threads: Some(0),
            context: Some(300),
            batch: Some(100_000),
            ..LlamaSettings::default()
        }
        .parameters(8192);
        assert_eq!((odd.threads, odd.context, odd.batch), (1, 512, 512));
    }
}
