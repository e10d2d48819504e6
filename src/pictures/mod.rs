//! Pictures of products: what is accepted, what is removed from them, where they are kept.
//!
//! A picture is recognised by its content. Its container is taken apart and put together again from the parts that show
//! the picture and nothing else: no place, camera, person or comment, no preview, nothing hidden behind the end. The
//! compressed pixels are not touched. Of EXIF one value is written anew: the orientation, without which photos would
//! turn. What comes out is decoded to the last pixel of the last frame, within limits, and thrown away.

mod decode;
mod gif;
mod jpeg;
mod orientation;
mod png;
mod store;
mod webp;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::computing;

pub use store::{Deleted, PictureStore, PictureStoreError, S3Settings};

/// The greatest file that is accepted, in bytes.
pub const PICTURE_BYTES: usize = 10 << 20;
/// The most pixels a picture may have, width times height.
pub const PICTURE_PIXELS: u64 = 50_000_000;
/// Pictures looked at by one processor at a time.
const DECODED_AT_ONCE: usize = 2;
/// Memory for all pictures that are decoded at one time, in MiB: one of the greatest, or many small ones.
const DECODING_MIB: usize = (decode::MEMORY_BYTES >> 20) as usize + 32;

/// A picture that every browser shows, without anything but the picture in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// `image/jpeg`, `image/png`, `image/gif` or `image/webp`.
    pub content_type: &'static str,
    /// Width in pixels as shown, that is, after the orientation is applied.
    pub width: u32,
    /// Height in pixels as shown.
    pub height: u32,
    /// The cleaned file.
    pub bytes: Bytes,
}

/// Why bytes are not accepted as a picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// More than [`PICTURE_BYTES`] (413).
    #[error("the picture has more than {} MiB", PICTURE_BYTES >> 20)]
    TooLarge,
    /// None of the four formats (415).
    #[error("the picture is not a JPEG, PNG, GIF or WebP")]
    Unsupported,
    /// The content begins like a picture and is broken (422).
    #[error("the picture cannot be read: {0}")]
    Unreadable(String),
    /// More than [`PICTURE_PIXELS`], an animation of too many, or more memory than its size allows for (422).
    #[error("the picture has too many pixels; up to {PICTURE_PIXELS} are possible")]
    TooManyPixels,
}

/// One of the four formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Jpeg,
    Png,
    Gif,
    WebP,
}

/// A container taken apart and put together again.
#[derive(Debug, PartialEq, Eq)]
struct Cleaned {
    bytes: Vec<u8>,
    /// EXIF's orientation, 1 to 8; 1 is upright.
    orientation: u8,
}

/// Checks a picture and removes what is not the picture.
///
/// Takes up to seconds of processor time and hundreds of megabytes for the greatest pictures: see [`Inspector`].
///
/// # Errors
///
/// See [`PictureError`], in this order: size, format, content.
pub fn inspect(bytes: Bytes) -> Result<Picture, PictureError> {
    prepare(bytes)?.decode()
}

/// A picture taken apart and put together again, and not decoded yet.
struct Prepared {
    format: Format,
    cleaned: Cleaned,
    /// Bytes that decoding takes, at most.
    memory: u64,
}

fn prepare(bytes: Bytes) -> Result<Prepared, PictureError> {
    if bytes.len() > PICTURE_BYTES {
        return Err(PictureError::TooLarge);
    }
    let format = recognise(&bytes).ok_or(PictureError::Unsupported)?;
    let cleaned = match format {
        Format::Jpeg => jpeg::clean(&bytes),
        Format::Png => png::clean(&bytes),
        Format::Gif => gif::clean(&bytes),
        Format::WebP => webp::clean(&bytes),
    }
    .map_err(|fault| PictureError::Unreadable(fault.to_owned()))?;
    let memory = decode::memory(format, &cleaned.bytes)?;
    Ok(Prepared { format, cleaned, memory })
}

impl Prepared {
    fn decode(self) -> Result<Picture, PictureError> {
        let Prepared { format, cleaned, .. } = self;
        let (width, height) = decode::decode(format, &cleaned.bytes)?;
        let (width, height) = if orientation::turns(cleaned.orientation) { (height, width) } else { (width, height) };
        Ok(Picture { content_type: format.content_type(), width, height, bytes: cleaned.bytes.into() })
    }
}

/// [`inspect`] for asynchronous callers, on threads made for work that blocks, a few pictures at a time.
#[derive(Debug, Clone)]
pub struct Inspector {
    turns: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

impl Inspector {
    /// One for the whole service.
    pub fn new() -> Inspector {
        Inspector { turns: Arc::new(Semaphore::new(DECODED_AT_ONCE)), memory: Arc::new(Semaphore::new(DECODING_MIB)) }
    }

    /// Waits for its turn, and for the memory that decoding takes, and inspects. The work goes on, and keeps both, when
    /// the caller has given up.
    ///
    /// # Errors
    ///
    /// As [`inspect`]; a decoder that panics makes the picture [`PictureError::Unreadable`].
    pub async fn inspect(&self, bytes: Bytes) -> Result<Picture, PictureError> {
        if bytes.len() > PICTURE_BYTES {
            return Err(PictureError::TooLarge);
        }
        let prepared = self.turn(None, move || prepare(bytes)).await?;
        let mebibytes = prepared.memory.div_ceil(1 << 20).min(DECODING_MIB as u64) as u32;
        let memory = Arc::clone(&self.memory).acquire_many_owned(mebibytes).await.ok();
        self.turn(memory, move || prepared.decode()).await
    }

    async fn turn<T: Send + 'static>(
        &self,
        memory: Option<OwnedSemaphorePermit>,
        compute: impl FnOnce() -> Result<T, PictureError> + Send + 'static,
    ) -> Result<T, PictureError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let compute = move || {
            let _held = (turn, memory);
            compute()
        };
        match computing::spawn(compute).await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(%error, "a picture's decoder failed");
                Err(PictureError::Unreadable("its decoder gave up".to_owned()))
            }
        }
    }
}

impl Default for Inspector {
    fn default() -> Inspector {
        Inspector::new()
    }
}

impl Format {
    fn content_type(self) -> &'static str {
        match self {
            Format::Jpeg => "image/jpeg",
            Format::Png => "image/png",
            Format::Gif => "image/gif",
            Format::WebP => "image/webp",
        }
    }
}

fn recognise(bytes: &[u8]) -> Option<Format> {
    match bytes {
        [0xFF, 0xD8, 0xFF, ..] => Some(Format::Jpeg),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Format::Gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::WebP),
        _ => bytes.starts_with(png::SIGNATURE).then_some(Format::Png),
    }
}

#[cfg(test)]
mod tests;
