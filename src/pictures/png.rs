//! PNG: a row of named, checksummed chunks (PNG specification, third edition, which includes animation).

use super::{Cleaned, orientation};

/// The first bytes of every PNG.
pub(super) const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const EXIF: &[u8; 4] = b"eXIf";
const END: &[u8; 4] = b"IEND";
/// Chunks that say how the picture looks: size, palette, pixels, transparency, colour space, density, animation.
const KEPT: [&[u8; 4]; 18] = [
    b"IHDR", b"PLTE", b"IDAT", b"tRNS", b"cHRM", b"gAMA", b"iCCP", b"sBIT", b"sRGB", b"cICP", b"mDCV", b"cLLI",
    b"bKGD", b"pHYs", b"acTL", b"fcTL", b"fdAT", END,
];
/// Length, name and checksum.
const FRAME_BYTES: usize = 12;

/// Length, name, content and checksum: at least [`FRAME_BYTES`].
struct Chunk<'a> {
    whole: &'a [u8],
}

impl<'a> Chunk<'a> {
    fn name(&self) -> &'a [u8] {
        &self.whole[4..8]
    }

    fn content(&self) -> &'a [u8] {
        &self.whole[8..self.whole.len() - 4]
    }
}

/// Keeps the chunks of [`KEPT`] and writes the orientation.
pub(super) fn clean(bytes: &[u8]) -> Result<Cleaned, &'static str> {
    let chunks = parse(bytes)?;
    let exif = chunks.iter().find(|chunk| chunk.name() == EXIF);
    let orientation = exif.map_or(orientation::UPRIGHT, |chunk| orientation::read(chunk.content()));
    let mut cleaned = SIGNATURE.to_vec();
    for (position, chunk) in chunks.iter().enumerate() {
        if KEPT.iter().any(|kept| chunk.name() == *kept) {
            cleaned.extend_from_slice(chunk.whole);
        }
        // Right behind the header: many programs look for it before the pixels alone.
        if position == 0
            && let Some(exif) = orientation::write(orientation)
        {
            write(&mut cleaned, EXIF, &exif);
        }
    }
    Ok(Cleaned { bytes: cleaned, orientation })
}

/// How many frames the picture says it has, when it is animated.
pub(super) fn announced_frames(bytes: &[u8]) -> Option<u32> {
    let chunks = parse(bytes).ok()?;
    let control = chunks.iter().find(|chunk| chunk.name() == b"acTL")?;
    control.content().first_chunk().map(|count| u32::from_be_bytes(*count))
}

fn parse(bytes: &[u8]) -> Result<Vec<Chunk<'_>>, &'static str> {
    let mut chunks = Vec::new();
    let mut rest = &bytes[SIGNATURE.len()..];
    loop {
        let (chunk, after) = split_chunk(rest).ok_or("it ends too early")?;
        rest = after;
        let last = chunk.name() == END;
        chunks.push(chunk);
        if last {
            return Ok(chunks);
        }
    }
}

fn split_chunk(bytes: &[u8]) -> Option<(Chunk<'_>, &[u8])> {
    let length = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    let (whole, after) = bytes.split_at_checked(length.checked_add(FRAME_BYTES)?)?;
    Some((Chunk { whole }, after))
}

fn write(out: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    // Written by this module alone, a few bytes long: the length fits.
    out.extend(u32::try_from(content.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(name);
    out.extend_from_slice(content);
    out.extend(checksum(&[name, content].concat()).to_be_bytes());
}

/// CRC-32 as in annex D of the specification, bit by bit: it runs over 30 bytes.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_every_png() {
        assert_eq!(checksum(b"IEND"), 0xAE42_6082);
    }
}
