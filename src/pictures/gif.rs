//! GIF: a header, then blocks, most of them rows of sub-blocks (GIF89a).

use super::{Cleaned, orientation};

const EXTENSION: u8 = 0x21;
const IMAGE: u8 = 0x2C;
const TRAILER: u8 = 0x3B;
const GRAPHIC_CONTROL: u8 = 0xF9;
const APPLICATION: u8 = 0xFF;
/// Applications whose extension says how often an animation repeats.
const KEPT_APPLICATIONS: [&[u8]; 2] = [b"NETSCAPE2.0", b"ANIMEXTS1.0"];
/// Signature and screen descriptor.
const HEADER_BYTES: usize = 13;
/// An image's marker, position, size and flags.
const IMAGE_HEADER_BYTES: usize = 10;

/// Keeps images, their timing and the number of repetitions; drops comments, texts and all other applications' data,
/// XMP among them.
pub(super) fn clean(bytes: &[u8]) -> Result<Cleaned, &'static str> {
    let mut cleaned = Vec::with_capacity(bytes.len());
    each_block(bytes, |block| {
        if shows_the_picture(block) {
            cleaned.extend_from_slice(block);
        }
    })?;
    Ok(Cleaned { bytes: cleaned, orientation: orientation::UPRIGHT })
}

/// Pixels of the greatest frame that a file announces, which need not lie within its screen; 0 where it has none.
pub(super) fn greatest_frame(bytes: &[u8]) -> u64 {
    let mut greatest = 0;
    // What a broken file has announced before it breaks off is what decoding it takes.
    let _ = each_block(bytes, |block| {
        if let [IMAGE, _, _, _, _, width_low, width_high, height_low, height_high, ..] = *block {
            let side = |low, high| u64::from(u16::from_le_bytes([low, high]));
            greatest = greatest.max(side(width_low, width_high) * side(height_low, height_high));
        }
    });
    greatest
}

/// Tells of the header, of each block, and of the trailer.
fn each_block<'f>(bytes: &'f [u8], mut tell: impl FnMut(&'f [u8])) -> Result<(), &'static str> {
    const CUT_OFF: &str = "it ends too early";
    let flags = *bytes.get(HEADER_BYTES - 3).ok_or(CUT_OFF)?;
    let (header, mut rest) = bytes.split_at_checked(HEADER_BYTES + table_bytes(flags)).ok_or(CUT_OFF)?;
    tell(header);
    loop {
        let length = match rest {
            [TRAILER, ..] => {
                tell(&rest[..1]);
                return Ok(());
            }
            [EXTENSION, _, blocks @ ..] => 2 + sub_blocks_length(blocks).ok_or(CUT_OFF)?,
            [IMAGE, ..] => image_length(rest).ok_or(CUT_OFF)?,
            [] => return Err(CUT_OFF),
            _ => return Err("it has an unknown block"),
        };
        let (block, after) = rest.split_at_checked(length).ok_or(CUT_OFF)?;
        tell(block);
        rest = after;
    }
}

fn shows_the_picture(block: &[u8]) -> bool {
    match block {
        // The header begins with the letters of the format.
        [b'G', ..] | [IMAGE | TRAILER, ..] | [EXTENSION, GRAPHIC_CONTROL, ..] => true,
        [EXTENSION, APPLICATION, 11, rest @ ..] => KEPT_APPLICATIONS.iter().any(|name| rest.starts_with(name)),
        _ => false,
    }
}

/// Bytes of the colour table that the flags of a screen or an image announce.
fn table_bytes(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 0x07) + 1) }
}

fn image_length(block: &[u8]) -> Option<usize> {
    // The least code size of the compressed data comes before its sub-blocks.
    let data = IMAGE_HEADER_BYTES + table_bytes(*block.get(IMAGE_HEADER_BYTES - 1)?) + 1;
    Some(data + sub_blocks_length(block.get(data..)?)?)
}

/// Bytes of a row of sub-blocks, each with its length before it, with the empty one that ends it.
fn sub_blocks_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1 + length;
        if length == 0 {
            return Some(at);
        }
    }
}
