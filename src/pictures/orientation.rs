//! The one value of EXIF that is kept: how a photo is turned.

/// The tag of the orientation.
const TAG: u16 = 0x0112;
/// Bytes of an entry of a directory.
const ENTRY_BYTES: usize = 12;
/// Upright, which is also what a picture without EXIF is.
pub(super) const UPRIGHT: u8 = 1;

/// The orientation in an EXIF block (which is a TIFF file), [`UPRIGHT`] when there is none that makes sense.
pub(super) fn read(exif: &[u8]) -> u8 {
    entry(exif).and_then(|value| u8::try_from(value).ok()).filter(|value| (1..=8).contains(value)).unwrap_or(UPRIGHT)
}

/// The value of the orientation in the first directory of a TIFF file.
fn entry(tiff: &[u8]) -> Option<u16> {
    let is_little = match tiff.first_chunk()? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let long = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = usize::try_from(long(4)?).ok()?;
    for number in 0..usize::from(short(directory)?) {
        let at = directory.checked_add(2 + ENTRY_BYTES * number)?;
        // Tag, type (a 16-bit number) and count; the value stands in the upper half of its field.
        if (short(at)?, short(at + 2)?, long(at + 4)?) == (TAG, 3, 1) {
            return short(at + 8);
        }
    }
    None
}

/// An EXIF block with nothing but the orientation; none when it is upright.
pub(super) fn write(orientation: u8) -> Option<Vec<u8>> {
    if orientation == UPRIGHT {
        return None;
    }
    // Big-endian TIFF whose only directory, at offset 8, has one entry and no successor: tag 0x0112 (orientation), type
    // 3 (a 16-bit number), count 1, the value in the upper half of its field.
    let mut block = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01".to_vec();
    block.extend([0, orientation, 0, 0, 0, 0, 0, 0]);
    Some(block)
}

/// Whether a picture so turned is as wide as it is stored high.
pub(super) fn turns(orientation: u8) -> bool {
    orientation >= 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_orientation_survives_its_writing() {
        for orientation in 2..=8 {
            assert_eq!(read(&write(orientation).expect("a block")), orientation);
        }
        assert_eq!(write(UPRIGHT), None);
        let little = b"II*\0\x08\0\0\0\x02\0\0\x01\x03\0\x01\0\0\0\x05\0\0\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        assert_eq!(read(little), 6, "behind another entry, the other way round");
        let mut unknown = write(8).expect("a block");
        unknown[19] = 9;
        for nonsense in [&b""[..], b"MM\0\x2a", b"II\x2a\0\xff\xff\xff\xff", b"no TIFF", &little[..30], &unknown] {
            assert_eq!(read(nonsense), UPRIGHT);
        }
    }
}
