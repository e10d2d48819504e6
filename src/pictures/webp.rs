//! WebP: a RIFF file, that is, a row of named chunks of even length (RFC 9649).

use super::{Cleaned, orientation};

/// Chunks of a file that say how the picture looks.
const KEPT: [&[u8; 4]; 6] = [b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"ICCP"];
/// Chunks of one frame of an animation that do.
const KEPT_IN_FRAME: [&[u8; 4]; 3] = [b"VP8 ", b"VP8L", b"ALPH"];
/// Position, size, duration and flags of a frame.
const FRAME_HEADER_BYTES: usize = 16;
/// `RIFF`, length, `WEBP`.
const FILE_HEADER_BYTES: usize = 12;
/// Flags of the extended header: there is EXIF, there is XMP.
const HAS_EXIF: u8 = 0x08;
const HAS_XMP: u8 = 0x04;

const CUT_OFF: &str = "it ends too early";

/// Keeps the chunks of [`KEPT`] and writes the orientation.
pub(super) fn clean(bytes: &[u8]) -> Result<Cleaned, &'static str> {
    let length = u32::from_le_bytes(*bytes[4..].first_chunk().ok_or(CUT_OFF)?) as usize;
    let chunks = parse(bytes.get(FILE_HEADER_BYTES..length.saturating_add(8)).ok_or(CUT_OFF)?)?;
    let extended = chunks.iter().any(|(name, _)| name == b"VP8X");
    let exif = chunks.iter().find(|(name, _)| extended && name == b"EXIF").map(|(_, content)| *content);
    // Some programs write JPEG's prefix here, too.
    let orientation =
        exif.map_or(orientation::UPRIGHT, |exif| orientation::read(exif.strip_prefix(b"Exif\0\0").unwrap_or(exif)));
    let exif = orientation::write(orientation);
    let mut cleaned = b"RIFF\0\0\0\0WEBP".to_vec();
    for (name, content) in &chunks {
        match name {
            b"VP8X" => {
                let mut header = content.to_vec();
                let flags = header.first_mut().ok_or(CUT_OFF)?;
                *flags &= !(HAS_EXIF | HAS_XMP);
                *flags |= if exif.is_some() { HAS_EXIF } else { 0 };
                write(&mut cleaned, name, &header);
            }
            b"ANMF" => write(&mut cleaned, name, &clean_frame(content)?),
            _ if KEPT.contains(&name) => write(&mut cleaned, name, content),
            _ => {}
        }
    }
    if let Some(exif) = exif {
        write(&mut cleaned, b"EXIF", &exif);
    }
    // What is written is no longer than what was read, so the length fits.
    let length = u32::try_from(cleaned.len() - 8).unwrap_or(u32::MAX);
    cleaned[4..8].copy_from_slice(&length.to_le_bytes());
    Ok(Cleaned { bytes: cleaned, orientation })
}

fn clean_frame(content: &[u8]) -> Result<Vec<u8>, &'static str> {
    let (header, chunks) = content.split_at_checked(FRAME_HEADER_BYTES).ok_or(CUT_OFF)?;
    let mut cleaned = header.to_vec();
    for (name, content) in parse(chunks)? {
        if KEPT_IN_FRAME.contains(&&name) {
            write(&mut cleaned, &name, content);
        }
    }
    Ok(cleaned)
}

type Chunk<'a> = ([u8; 4], &'a [u8]);

fn parse(mut bytes: &[u8]) -> Result<Vec<Chunk<'_>>, &'static str> {
    let mut chunks = Vec::new();
    while !bytes.is_empty() {
        let name = *bytes.first_chunk().ok_or(CUT_OFF)?;
        let length = u32::from_le_bytes(*bytes[4..].first_chunk().ok_or(CUT_OFF)?) as usize;
        let content = bytes.get(8..length.saturating_add(8)).ok_or(CUT_OFF)?;
        chunks.push((name, content));
        // The last chunk of a file often lacks the byte that makes it even.
        bytes = bytes.get(8 + length + length % 2..).unwrap_or_default();
    }
    Ok(chunks)
}

fn write(out: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    out.extend_from_slice(name);
    out.extend(u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(content);
    if content.len() % 2 == 1 {
        out.push(0);
    }
}
