//! Safe wrappers for the parts of llama.cpp that the engine uses: a model, and a context with one
//! sequence.
//!
//! Uses `llama-cpp-sys-2` directly, because `llama-cpp-2` also compiles llama.cpp's `common`
//! library, which takes longer than the rest of llama.cpp and is not used here. This is the only
//! file of the library with unsafe code, so it stays thin: no limits, no prompts, no error
//! messages.
#![expect(unsafe_code, reason = "llama.cpp has a C interface")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Once;

use llama_cpp_sys_2 as ffi;

/// A token's index in the vocabulary of its model.
pub(super) type Token = u32;

/// The only sequence in a context.
const SEQUENCE: ffi::llama_seq_id = 0;
/// Flags for a complete state.
const WHOLE_STATE: ffi::llama_state_seq_flags = 0;
/// llama.cpp's error code for a rejected batch.
const INVALID_BATCH: i32 = -1;

/// Silences and initialises llama.cpp, once per process.
fn initialise() {
    static START: Once = Once::new();
    extern "C" fn ignore(_: ffi::ggml_log_level, _: *const c_char, _: *mut c_void) {}
    // SAFETY: `Once` keeps other threads out, and the callback ignores its arguments.
    START.call_once(|| unsafe {
        ffi::llama_log_set(Some(ignore), ptr::null_mut());
        ffi::llama_backend_init();
    });
}

/// Returns the x86 extensions that llama.cpp was compiled for.
pub(super) fn compiled_features() -> Vec<&'static str> {
    type Flag = unsafe extern "C" fn() -> std::ffi::c_int;
    let flags: [(&str, Flag); 7] = [
        ("SSSE3", ffi::ggml_cpu_has_ssse3),
        ("AVX", ffi::ggml_cpu_has_avx),
        ("AVX2", ffi::ggml_cpu_has_avx2),
        ("FMA", ffi::ggml_cpu_has_fma),
        ("F16C", ffi::ggml_cpu_has_f16c),
        ("BMI2", ffi::ggml_cpu_has_bmi2),
        ("AVX-512", ffi::ggml_cpu_has_avx512),
    ];
    // SAFETY: each function returns a constant of the build.
    let is_set = |(_, flag): &(&str, Flag)| unsafe { flag() } != 0;
    flags.into_iter().filter(is_set).map(|(name, _)| name).collect()
}

/// Weights and vocabulary of a GGUF file. Neither `Send` nor `Sync`, because llama.cpp may write to
/// a model when it creates a context.
pub(super) struct LlamaModel {
    raw: NonNull<ffi::llama_model>,
}

impl LlamaModel {
    /// Loads a GGUF file. Returns `None` if llama.cpp cannot.
    pub(super) fn load(file: &Path) -> Option<Self> {
        initialise();
        let path = CString::new(file.to_str()?).ok()?;
        // SAFETY: the path ends with NUL and outlives the call, as do the default parameters.
        let raw = unsafe {
            ffi::llama_model_load_from_file(path.as_ptr(), ffi::llama_model_default_params())
        };
        NonNull::new(raw).map(|raw| Self { raw })
    }

    /// Returns the training context length, or 0 if the file does not state it.
    pub(super) fn trained_context(&self) -> u32 {
        // SAFETY: the model is alive.
        let tokens = unsafe { ffi::llama_model_n_ctx_train(self.raw.as_ptr()) };
        u32::try_from(tokens).unwrap_or(0)
    }

    /// Returns the chat template stored in the file, if any.
    pub(super) fn chat_template(&self) -> Option<&CStr> {
        // SAFETY: the model is alive; without a name it returns the default template.
        let template = unsafe { ffi::llama_model_chat_template(self.raw.as_ptr(), ptr::null()) };
        // SAFETY: if not null, it ends with NUL, belongs to the model and never changes.
        (!template.is_null()).then(|| unsafe { CStr::from_ptr(template) })
    }

    fn vocabulary(&self) -> *const ffi::llama_vocab {
        // SAFETY: the model is alive; its vocabulary lives as long as it does.
        unsafe { ffi::llama_model_get_vocab(self.raw.as_ptr()) }
    }

    /// Returns the number of tokens in the vocabulary.
    pub(super) fn vocabulary_size(&self) -> u32 {
        // SAFETY: the vocabulary is alive.
        let size = unsafe { ffi::llama_vocab_n_tokens(self.vocabulary()) };
        u32::try_from(size).unwrap_or(0)
    }

    /// Returns the token that must start every prompt, if the model requires one.
    pub(super) fn bos_token(&self) -> Option<Token> {
        // SAFETY: the vocabulary is alive.
        let (wanted, token) = unsafe {
            let vocabulary = self.vocabulary();
            (ffi::llama_vocab_get_add_bos(vocabulary), ffi::llama_vocab_bos(vocabulary))
        };
        Token::try_from(token).ok().filter(|_| wanted)
    }

    /// Returns the end-of-turn token, or else the end-of-text token.
    pub(super) fn end_token(&self) -> Option<Token> {
        // SAFETY: the vocabulary is alive.
        let (turn, text) = unsafe {
            let vocabulary = self.vocabulary();
            (ffi::llama_vocab_eot(vocabulary), ffi::llama_vocab_eos(vocabulary))
        };
        Token::try_from(turn).or_else(|_| Token::try_from(text)).ok()
    }

    /// Returns true if a reply ends with this token.
    pub(super) fn is_end_token(&self, token: Token) -> bool {
        self.checked_token(token).is_some_and(|token| {
            // SAFETY: the vocabulary is alive and has this token.
            unsafe { ffi::llama_vocab_is_eog(self.vocabulary(), token) }
        })
    }

    /// Returns true for a control token, such as `<|im_end|>`.
    #[cfg(test)]
    pub(super) fn is_control(&self, token: Token) -> bool {
        self.checked_token(token).is_some_and(|token| {
            // SAFETY: the vocabulary is alive and has this token.
            unsafe { ffi::llama_vocab_is_control(self.vocabulary(), token) }
        })
    }

    /// Tokenises a text. With `special`, names of control tokens in it become those tokens.
    pub(super) fn tokenize(&self, text: &[u8], special: bool) -> Vec<Token> {
        // A text longer than this exceeds any context, so truncating it is harmless.
        let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
        fill_buffer(text.len() / 2 + 8, |buffer: *mut Token, size| {
            // SAFETY: the vocabulary is alive, the text has `length` bytes, and the buffer has
            // room for `size` tokens, which are none of them negative.
            unsafe {
                ffi::llama_tokenize(
                    self.vocabulary(),
                    text.as_ptr().cast(),
                    length,
                    buffer.cast(),
                    size,
                    false,
                    special,
                )
            }
        })
    }

    /// Returns the bytes of a token. Empty for an unknown token, and for a control token unless
    /// `special` is set.
    pub(super) fn token_bytes(&self, token: Token, special: bool) -> Vec<u8> {
        let Some(token) = self.checked_token(token) else {
            return Vec::new();
        };
        fill_buffer(16, |buffer: *mut u8, size| {
            // SAFETY: the vocabulary is alive and has this token; the buffer has room for `size`
            // bytes.
            unsafe {
                ffi::llama_token_to_piece(self.vocabulary(), token, buffer.cast(), size, 0, special)
            }
        })
    }

    /// Checks that the token is in the vocabulary, because llama.cpp throws an exception otherwise.
    fn checked_token(&self, token: Token) -> Option<ffi::llama_token> {
        if token < self.vocabulary_size() { token.try_into().ok() } else { None }
    }
}

impl Drop for LlamaModel {
    fn drop(&mut self) {
        // SAFETY: contexts borrow the model, so none is left.
        unsafe { ffi::llama_model_free(self.raw.as_ptr()) }
    }
}

/// Calls a function that fills a buffer and returns the length written, or the negated size that it
/// needs.
fn fill_buffer<T: Copy + Default>(size: usize, call: impl Fn(*mut T, i32) -> i32) -> Vec<T> {
    let mut buffer = vec![T::default(); size];
    // The first call may only return the size that the buffer of the second has to have.
    for _ in 0..2 {
        let size = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
        let written = call(buffer.as_mut_ptr(), size);
        if let Ok(written) = usize::try_from(written) {
            buffer.truncate(written);
            return buffer;
        }
        let needed = written.checked_neg().and_then(|needed| usize::try_from(needed).ok());
        buffer.resize(needed.unwrap_or(0), T::default());
    }
    Vec::new()
}

/// Renders a conversation of (role, content) pairs up to the start of the next reply. Returns
/// `None` if llama.cpp does not support the template.
pub(super) fn render_chat(template: &CStr, messages: &[(&CStr, CString)]) -> Option<String> {
    let messages: Vec<ffi::llama_chat_message> = messages
        .iter()
        .map(|(role, content)| ffi::llama_chat_message {
            role: role.as_ptr(),
            content: content.as_ptr(),
        })
        .collect();
    let render = |buffer: &mut [u8]| {
        let size = i32::try_from(buffer.len()).ok()?;
        // SAFETY: all strings end with NUL and outlive the call; the buffer has `size` bytes, and
        // nothing is written if that is 0.
        let length = unsafe {
            ffi::llama_chat_apply_template(
                template.as_ptr(),
                messages.as_ptr(),
                messages.len(),
                true,
                buffer.as_mut_ptr().cast(),
                size,
            )
        };
        usize::try_from(length).ok()
    };
    // The first call only computes the length.
    let mut text = vec![0; render(&mut [])?];
    render(&mut text)?;
    String::from_utf8(text).ok()
}

/// Tokens of a batch after which to predict the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PredictAfter {
    Nothing,
    Last,
    Each,
}

/// The key-value cache of one sequence of tokens.
pub(super) struct LlamaContext<'model> {
    raw: NonNull<ffi::llama_context>,
    model: &'model LlamaModel,
}

/// A copy of the contents of a context.
pub(super) struct ContextState(Vec<u8>);

impl ContextState {
    /// Wraps bytes from [`ContextState::as_bytes`] of this version of llama.cpp.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the size in memory.
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }
}

impl<'model> LlamaContext<'model> {
    /// Creates an empty context for `tokens` tokens that decodes up to `batch` of them at once.
    pub(super) fn new(
        model: &'model LlamaModel,
        tokens: u32,
        batch: u32,
        threads: usize,
    ) -> Option<Self> {
        let threads = i32::try_from(threads).ok()?;
        // SAFETY: returns a plain value.
        let mut parameters = unsafe { ffi::llama_context_default_params() };
        parameters.n_ctx = tokens;
        parameters.n_batch = batch;
        parameters.n_ubatch = batch;
        parameters.n_threads = threads;
        parameters.n_threads_batch = threads;
        // Disabled because its sums depend on the number of threads.
        parameters.flash_attn_type = ffi::LLAMA_FLASH_ATTN_TYPE_DISABLED;
        // SAFETY: the model is alive and this thread's; the context borrows it.
        let raw = unsafe { ffi::llama_init_from_model(model.raw.as_ptr(), parameters) };
        NonNull::new(raw).map(|raw| Self { raw, model })
    }

    /// Sets the number of threads for subsequent calls.
    pub(super) fn set_threads(&mut self, threads: usize) {
        let threads = i32::try_from(threads).unwrap_or(i32::MAX);
        // SAFETY: the context is alive.
        unsafe { ffi::llama_set_n_threads(self.raw.as_ptr(), threads, threads) }
    }

    /// Appends one batch of tokens to the sequence and predicts what follows the selected ones. The
    /// error is llama.cpp's code.
    pub(super) fn decode(&mut self, tokens: &[Token], predict: PredictAfter) -> Result<(), i32> {
        // SAFETY: the context is alive.
        let batch = unsafe { ffi::llama_n_batch(self.raw.as_ptr()) };
        let count = i32::try_from(tokens.len()).map_err(|_| INVALID_BATCH)?;
        if count == 0 || count.cast_unsigned() > batch {
            return Err(INVALID_BATCH);
        }
        let mut wanted = vec![i8::from(predict == PredictAfter::Each); tokens.len()];
        if let Some(last) = wanted.last_mut() {
            *last = i8::from(predict != PredictAfter::Nothing);
        }
        let batch = ffi::llama_batch {
            n_tokens: count,
            token: tokens.as_ptr().cast_mut().cast(),
            embd: ptr::null_mut(),
            pos: ptr::null_mut(),
            n_seq_id: ptr::null_mut(),
            seq_id: ptr::null_mut(),
            logits: wanted.as_mut_ptr(),
        };
        // SAFETY: the context is alive. The arrays have `count` elements, outlive the call and are
        // only read; for the others, null means the next positions of sequence 0. Tokens outside
        // the vocabulary are rejected.
        match unsafe { ffi::llama_decode(self.raw.as_ptr(), batch) } {
            0 => Ok(()),
            code => Err(code),
        }
    }

    /// Returns the logits after the last token of the last [`Self::decode`], one for each token of
    /// the vocabulary.
    pub(super) fn logits(&mut self) -> Option<&[f32]> {
        self.row(-1)
    }

    /// Returns the logits after the token at this index of the last [`Self::decode`], which must
    /// have predicted after each token.
    pub(super) fn logits_after(&mut self, place: usize) -> Option<&[f32]> {
        self.row(i32::try_from(place).ok()?)
    }

    fn row(&mut self, place: i32) -> Option<&[f32]> {
        // SAFETY: the context is alive; -1 is the last output, and null is returned for an index
        // without one.
        let logits = unsafe { ffi::llama_get_logits_ith(self.raw.as_ptr(), place) };
        let logits = NonNull::new(logits)?;
        let size = self.model.vocabulary_size() as usize;
        // SAFETY: a row of logits is as long as the vocabulary, and stays until the next call that
        // takes the context by `&mut`.
        Some(unsafe { std::slice::from_raw_parts(logits.as_ptr(), size) })
    }

    /// Removes all tokens. Returns false on failure.
    pub(super) fn clear(&mut self) -> bool {
        self.truncate(0)
    }

    /// Keeps only the first `tokens` tokens. Returns false on failure, for example if the model's
    /// state cannot be rolled back.
    pub(super) fn truncate(&mut self, tokens: usize) -> bool {
        let Ok(first) = i32::try_from(tokens) else { return false };
        // SAFETY: the context is alive, and so is its memory; a negative end means all positions.
        unsafe {
            let memory = ffi::llama_get_memory(self.raw.as_ptr());
            ffi::llama_memory_seq_rm(memory, SEQUENCE, first, -1)
        }
    }

    /// Copies the contents of the context.
    pub(super) fn state(&mut self) -> Option<ContextState> {
        // SAFETY: the context is alive.
        let size =
            unsafe { ffi::llama_state_seq_get_size_ext(self.raw.as_ptr(), SEQUENCE, WHOLE_STATE) };
        let mut bytes = vec![0; size];
        // SAFETY: the context is alive, and the buffer has `size` bytes.
        let written = unsafe {
            let buffer = bytes.as_mut_ptr();
            ffi::llama_state_seq_get_data_ext(
                self.raw.as_ptr(),
                buffer,
                size,
                SEQUENCE,
                WHOLE_STATE,
            )
        };
        (size > 0 && written == size).then_some(ContextState(bytes))
    }

    /// Restores a state into an empty context. Returns false on failure.
    pub(super) fn restore(&mut self, ContextState(bytes): &ContextState) -> bool {
        // SAFETY: the context is alive; the bytes are llama.cpp's own, which checks their shape.
        let read = unsafe {
            ffi::llama_state_seq_set_data_ext(
                self.raw.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                SEQUENCE,
                WHOLE_STATE,
            )
        };
        read == bytes.len()
    }
}

impl Drop for LlamaContext<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the context any more; its model is still alive.
        unsafe { ffi::llama_free(self.raw.as_ptr()) }
    }
}
