//! The one value of EXIF that is kept: how a photo is turned.

use image::metadata::Orientation;

/// Upright, which is also what a picture without EXIF is.
pub(super) const UPRIGHT: u8 = 1;

/// The orientation in an EXIF block (which is a TIFF file), [`UPRIGHT`] when there is none that makes sense.
pub(super) fn read(exif: &[u8]) -> u8 {
    Orientation::from_exif_chunk(exif).map_or(UPRIGHT, Orientation::to_exif)
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
        for nonsense in [&b""[..], b"MM\0\x2a", b"II\x2a\0\xff\xff\xff\xff", b"no TIFF"] {
            assert_eq!(read(nonsense), UPRIGHT);
        }
    }
}
