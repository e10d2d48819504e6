//! Decoding to the last pixel, within limits of memory and work.

use std::fmt::Display;
use std::io::Cursor;
use std::num::NonZeroU64;

use zune_core::bytestream::ZCursor;
use zune_core::options::DecoderOptions;

use super::{Format, PICTURE_PIXELS, PictureError, gif as blocks, jpeg};

/// Memory that decoding one picture may take: the greatest picture at 16 bits for each of four channels.
pub(super) const MEMORY_BYTES: u64 = PICTURE_PIXELS * PIXEL_BYTES;
/// Bytes of a pixel at 16 bits for each of four channels.
const PIXEL_BYTES: u64 = 8;
/// Rows of a PNG that are in memory at one time, about: it is decoded row by row, and none is kept.
const PNG_ROWS: u64 = 8;
/// Pixels of all frames of an animation together. Decoding takes about 10 ns for each.
const ANIMATION_PIXELS: u64 = 4 * PICTURE_PIXELS;
/// Memory for each pixel of a progressive JPEG: coefficients of up to four channels at 16 bits, and the picture at 8. The
/// decoder counts the picture alone.
const PROGRESSIVE_PIXEL_BYTES: u64 = 12;

/// Bytes of memory that decoding a cleaned file takes, at most.
pub(super) fn memory(format: Format, bytes: &[u8]) -> Result<u64, PictureError> {
    let (width, height) = dimensions(format, bytes)?;
    let (width, height) = (u64::from(width), u64::from(height));
    let (pixels, pixel) = match format {
        Format::Jpeg => (width * height, PROGRESSIVE_PIXEL_BYTES),
        Format::Png => (width * height.min(PNG_ROWS), PIXEL_BYTES),
        // Frames of an animation are put together on a canvas of their own; those of a GIF may be larger than its screen.
        Format::Gif => (blocks::greatest_frame(bytes).max(width * height), 2 * 4),
        Format::WebP => (width * height, 2 * 4),
    };
    Ok(pixels.saturating_mul(pixel).min(MEMORY_BYTES))
}

/// Decodes a cleaned file and returns its width and height as stored.
pub(super) fn decode(format: Format, bytes: &[u8]) -> Result<(u32, u32), PictureError> {
    let (width, height) = dimensions(format, bytes)?;
    let pixels = u64::from(width) * u64::from(height);
    if pixels > PICTURE_PIXELS {
        return Err(PictureError::TooManyPixels);
    }
    match format {
        Format::Jpeg if pixels * PROGRESSIVE_PIXEL_BYTES > MEMORY_BYTES && jpeg::is_progressive(bytes) => {
            return Err(PictureError::TooManyPixels);
        }
        Format::Jpeg => jpeg_decoder(bytes).decode().map(drop).map_err(unreadable)?,
        Format::Png => play_png(bytes, pixels)?,
        Format::Gif => play_gif(bytes, pixels)?,
        Format::WebP => play_webp(bytes, pixels)?,
    }
    Ok((width, height))
}

/// Width and height as a file announces them.
fn dimensions(format: Format, bytes: &[u8]) -> Result<(u32, u32), PictureError> {
    match format {
        Format::Jpeg => {
            let mut decoder = jpeg_decoder(bytes);
            decoder.decode_headers().map_err(unreadable)?;
            let (width, height) = decoder.dimensions().unwrap_or_default();
            // A JPEG has 16 bits for either.
            Ok((u32::try_from(width).unwrap_or(u32::MAX), u32::try_from(height).unwrap_or(u32::MAX)))
        }
        Format::Png => png_decoder(bytes).read_header_info().map(png::Info::size).map_err(png_fault),
        Format::Gif => {
            let decoder = gif_options().read_info(bytes).map_err(unreadable)?;
            Ok((decoder.width().into(), decoder.height().into()))
        }
        Format::WebP => webp_decoder(bytes).map(|decoder| decoder.dimensions()),
    }
}

fn jpeg_decoder(bytes: &[u8]) -> zune_jpeg::JpegDecoder<ZCursor<&[u8]>> {
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options)
}

fn png_decoder(bytes: &[u8]) -> png::Decoder<Cursor<&[u8]>> {
    let limits = png::Limits { bytes: usize::try_from(MEMORY_BYTES).unwrap_or(usize::MAX) };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    // Nobody looks at the colour profile here, and a few bytes may unpack to very many.
    decoder.set_ignore_iccp_chunk(true);
    decoder
}

/// The picture, and all frames of an animation.
fn play_png(bytes: &[u8], pixels: u64) -> Result<(), PictureError> {
    let mut reader = png_decoder(bytes).read_info().map_err(png_fault)?;
    let announced = super::png::announced_frames(bytes).unwrap_or_default();
    if pixels * u64::from(announced) > ANIMATION_PIXELS {
        return Err(PictureError::TooManyPixels);
    }
    // A picture in front of the animation is none of its frames.
    let played = reader.info().animation_control().map_or(0, |control| control.num_frames);
    let apart = u32::from(played == 0 || reader.info().frame_control().is_none());
    for frame in 0..played + apart {
        if frame > 0 {
            reader.next_frame_info().map_err(png_fault)?;
        }
        while reader.next_row().map_err(png_fault)?.is_some() {}
    }
    Ok(())
}

fn gif_options() -> gif::DecodeOptions {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    options
        .set_memory_limit(NonZeroU64::new(MEMORY_BYTES).map_or(gif::MemoryLimit::Unlimited, gif::MemoryLimit::Bytes));
    options
}

fn play_gif(bytes: &[u8], pixels: u64) -> Result<(), PictureError> {
    let mut decoder = gif_options().read_info(bytes).map_err(unreadable)?;
    let mut played = Played::default();
    while let Some(frame) = decoder.next_frame_info().map_err(unreadable)? {
        let own = u64::from(frame.width) * u64::from(frame.height);
        if own > PICTURE_PIXELS {
            return Err(PictureError::TooManyPixels);
        }
        played.add(own.max(pixels))?;
        let mut buffer = vec![0; decoder.buffer_size()];
        decoder.read_into_buffer(&mut buffer).map_err(unreadable)?;
    }
    played.end()
}

fn webp_decoder(bytes: &[u8]) -> Result<image_webp::WebPDecoder<Cursor<&[u8]>>, PictureError> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).map_err(unreadable)?;
    decoder.set_memory_limit(usize::try_from(MEMORY_BYTES).unwrap_or(usize::MAX));
    Ok(decoder)
}

fn play_webp(bytes: &[u8], pixels: u64) -> Result<(), PictureError> {
    let mut decoder = webp_decoder(bytes)?;
    let mut buffer = vec![0; decoder.output_buffer_size().ok_or(PictureError::TooManyPixels)?];
    if !decoder.is_animated() {
        return decoder.read_image(&mut buffer).map_err(unreadable);
    }
    let mut played = Played::default();
    for _ in 0..decoder.num_frames() {
        played.add(pixels)?;
        match decoder.read_frame(&mut buffer) {
            Ok(_) => {}
            Err(image_webp::DecodingError::NoMoreFrames) => break,
            Err(error) => return Err(unreadable(error)),
        }
    }
    played.end()
}

/// Pixels of an animation that were decoded.
#[derive(Default)]
struct Played(u64);

impl Played {
    fn add(&mut self, pixels: u64) -> Result<(), PictureError> {
        // A frame of no pixel is work as well.
        self.0 += pixels.max(1);
        if self.0 > ANIMATION_PIXELS { Err(PictureError::TooManyPixels) } else { Ok(()) }
    }

    fn end(self) -> Result<(), PictureError> {
        if self.0 == 0 { Err(PictureError::Unreadable("it has no frame".to_owned())) } else { Ok(()) }
    }
}

fn png_fault(error: png::DecodingError) -> PictureError {
    match error {
        png::DecodingError::LimitsExceeded => PictureError::TooManyPixels,
        other => unreadable(other),
    }
}

fn unreadable(error: impl Display) -> PictureError {
    PictureError::Unreadable(error.to_string())
}
