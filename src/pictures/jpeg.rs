//! JPEG: a row of segments, some of them followed by compressed data (ITU-T T.81, annex B).

use super::{Cleaned, orientation};

const APP0: u8 = 0xE0;
const APP1: u8 = 0xE1;
const APP2: u8 = 0xE2;
const APP14: u8 = 0xEE;
const START_OF_SCAN: u8 = 0xDA;
const END_OF_IMAGE: u8 = 0xD9;
const EXIF: &[u8] = b"Exif\0\0";
/// JFIF's segment without the preview that may follow: name, version, density, and a preview of 0 by 0 pixels.
const JFIF_BYTES: usize = 14;

/// A segment, and the compressed data that belongs to it.
struct Segment<'a> {
    marker: u8,
    content: &'a [u8],
    data: &'a [u8],
}

/// Keeps frame, tables and scans, JFIF's and Adobe's hints and the colour profile, and writes the orientation.
pub(super) fn clean(bytes: &[u8]) -> Result<Cleaned, &'static str> {
    let segments = parse(bytes)?;
    let exif = segments.iter().find_map(|segment| match segment.marker {
        APP1 => segment.content.strip_prefix(EXIF),
        _ => None,
    });
    let orientation = exif.map_or(orientation::UPRIGHT, orientation::read);
    let mut cleaned = vec![0xFF, 0xD8];
    let is_jfif = |segment: &&Segment| {
        segment.marker == APP0 && segment.content.starts_with(b"JFIF\0") && segment.content.len() >= JFIF_BYTES
    };
    if let Some(jfif) = segments.iter().find(is_jfif) {
        let mut content = jfif.content[..JFIF_BYTES].to_vec();
        content[JFIF_BYTES - 2..].fill(0);
        write(&mut cleaned, APP0, &content);
    }
    if let Some(exif) = orientation::write(orientation) {
        write(&mut cleaned, APP1, &[EXIF, &exif].concat());
    }
    for segment in segments.iter().filter(|segment| shows_the_picture(segment)) {
        write(&mut cleaned, segment.marker, segment.content);
        cleaned.extend_from_slice(segment.data);
    }
    cleaned.extend([0xFF, END_OF_IMAGE]);
    Ok(Cleaned { bytes: cleaned, orientation })
}

/// Whether the picture is sent in several ever finer scans.
pub(super) fn is_progressive(bytes: &[u8]) -> bool {
    parse(bytes)
        .is_ok_and(|segments| segments.iter().any(|segment| matches!(segment.marker, 0xC2 | 0xC6 | 0xCA | 0xCE)))
}

fn shows_the_picture(segment: &Segment) -> bool {
    match segment.marker {
        // Frames, Huffman and quantisation tables, scans, number of lines, restart interval.
        0xC0..=0xCF | START_OF_SCAN..=0xDD => true,
        APP2 => segment.content.starts_with(b"ICC_PROFILE\0"),
        APP14 => segment.content.starts_with(b"Adobe"),
        _ => false,
    }
}

fn write(out: &mut Vec<u8>, marker: u8, content: &[u8]) {
    // Content comes from a segment, or is a few bytes long: its length fits.
    let length = u16::try_from(content.len() + 2).unwrap_or(u16::MAX);
    out.extend([0xFF, marker]);
    out.extend(length.to_be_bytes());
    out.extend_from_slice(content);
}

fn parse(bytes: &[u8]) -> Result<Vec<Segment<'_>>, &'static str> {
    const CUT_OFF: &str = "it ends too early";
    let mut segments = Vec::new();
    let mut rest = bytes.get(2..).ok_or(CUT_OFF)?;
    loop {
        // Decoders pass over what stands between segments, and so does this.
        let start = rest.iter().position(|byte| *byte == 0xFF).ok_or(CUT_OFF)?;
        rest = &rest[start..];
        let marker = *rest.iter().find(|byte| **byte != 0xFF).ok_or(CUT_OFF)?;
        let after = rest.iter().position(|byte| *byte != 0xFF).ok_or(CUT_OFF)? + 1;
        rest = &rest[after..];
        match marker {
            END_OF_IMAGE => return Ok(segments),
            0x00 | 0x01 | 0xD0..=0xD8 => continue,
            _ => {}
        }
        let length = usize::from(u16::from_be_bytes(*rest.first_chunk().ok_or(CUT_OFF)?));
        let content = rest.get(2..length).ok_or(CUT_OFF)?;
        rest = &rest[length..];
        let data;
        (data, rest) = if marker == START_OF_SCAN { rest.split_at(scan_length(rest)) } else { rest.split_at(0) };
        segments.push(Segment { marker, content, data });
    }
}

/// How many bytes of compressed data there are up to the next marker: 0xFF stands for itself before 0, and restart
/// markers are part of the data.
fn scan_length(data: &[u8]) -> usize {
    let ends = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0xD0..=0xD7 | 0xFF);
    data.windows(2).position(ends).unwrap_or(data.len())
}
