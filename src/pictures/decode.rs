//! Decoding to the last pixel, within limits of memory and work.

use std::io::Cursor;

use image::codecs::gif::GifDecoder;
use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::error::ImageError;
use image::{AnimationDecoder, DynamicImage, Frames, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::{Format, PICTURE_PIXELS, PictureError, jpeg, png};

/// Memory that decoding one picture may take: the greatest picture at 16 bits for each of four channels.
pub(super) const MEMORY_BYTES: u64 = PICTURE_PIXELS * 8;
/// Pixels of all frames of an animation together. Decoding takes about 10 ns for each.
const ANIMATION_PIXELS: u64 = 4 * PICTURE_PIXELS;
/// Memory for each pixel of a progressive JPEG: coefficients of three channels at 16 bits, and the picture at 8. The
/// decoder counts the picture alone.
const PROGRESSIVE_PIXEL_BYTES: u64 = 9;

/// Bytes of memory that decoding a cleaned file takes, at most.
pub(super) fn memory(format: Format, bytes: &[u8]) -> Result<u64, PictureError> {
    let (width, height) = reader(format, bytes).into_dimensions().map_err(fault)?;
    let pixel = match format {
        Format::Jpeg => PROGRESSIVE_PIXEL_BYTES,
        Format::Png => MEMORY_BYTES / PICTURE_PIXELS,
        // Frames of an animation are put together on a canvas of their own.
        Format::Gif | Format::WebP => 2 * 4,
    };
    Ok((u64::from(width) * u64::from(height)).saturating_mul(pixel).min(MEMORY_BYTES))
}

/// Decodes a cleaned file and returns its width and height as stored.
pub(super) fn decode(format: Format, bytes: &[u8]) -> Result<(u32, u32), PictureError> {
    let (width, height) = reader(format, bytes).into_dimensions().map_err(fault)?;
    let pixels = u64::from(width) * u64::from(height);
    if pixels > PICTURE_PIXELS {
        return Err(PictureError::TooManyPixels);
    }
    match format {
        Format::Jpeg if pixels * PROGRESSIVE_PIXEL_BYTES > MEMORY_BYTES && jpeg::is_progressive(bytes) => {
            return Err(PictureError::TooManyPixels);
        }
        Format::Gif => {
            let mut decoder = GifDecoder::new(Cursor::new(bytes)).map_err(fault)?;
            decoder.set_limits(limits()).map_err(fault)?;
            play(decoder.into_frames(), pixels)?;
        }
        Format::WebP => {
            let decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(fault)?;
            if decoder.has_animation() { play(decoder.into_frames(), pixels)? } else { still(format, bytes)? }
        }
        Format::Png => {
            still(format, bytes)?;
            if let Some(frames) = png::announced_frames(bytes) {
                if pixels * u64::from(frames) > ANIMATION_PIXELS {
                    return Err(PictureError::TooManyPixels);
                }
                let decoder = PngDecoder::with_limits(Cursor::new(bytes), limits()).map_err(fault)?;
                play(decoder.apng().map_err(fault)?.into_frames(), pixels)?;
            }
        }
        Format::Jpeg => still(format, bytes)?,
    }
    Ok((width, height))
}

fn still(format: Format, bytes: &[u8]) -> Result<(), PictureError> {
    let _decoded: DynamicImage = reader(format, bytes).decode().map_err(fault)?;
    Ok(())
}

fn play(frames: Frames<'_>, pixels: u64) -> Result<(), PictureError> {
    let mut played = 0;
    for frame in frames {
        frame.map_err(fault)?;
        played += pixels;
        if played > ANIMATION_PIXELS {
            return Err(PictureError::TooManyPixels);
        }
    }
    if played == 0 {
        return Err(PictureError::Unreadable("it has no frame".to_owned()));
    }
    Ok(())
}

fn reader(format: Format, bytes: &[u8]) -> ImageReader<Cursor<&[u8]>> {
    let format = match format {
        Format::Jpeg => ImageFormat::Jpeg,
        Format::Png => ImageFormat::Png,
        Format::Gif => ImageFormat::Gif,
        Format::WebP => ImageFormat::WebP,
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits());
    reader
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MEMORY_BYTES);
    limits
}

fn fault(error: ImageError) -> PictureError {
    match error {
        ImageError::Limits(_) => PictureError::TooManyPixels,
        other => PictureError::Unreadable(other.to_string()),
    }
}
