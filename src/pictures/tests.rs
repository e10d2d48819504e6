//! Pictures made here by the image crate, and hostile ones made from them.

use std::io::Cursor;

use image::codecs::gif::{GifEncoder, Repeat};
use image::metadata::Orientation;
use image::{Delay, DynamicImage, Frame, ImageFormat, Rgb, RgbImage, RgbaImage};

use super::*;

const SECRET: &str = "48.137154,11.576124 Jane Doe";
const FORMATS: [(Format, ImageFormat, &str); 4] = [
    (Format::Jpeg, ImageFormat::Jpeg, "image/jpeg"),
    (Format::Png, ImageFormat::Png, "image/png"),
    (Format::Gif, ImageFormat::Gif, "image/gif"),
    (Format::WebP, ImageFormat::WebP, "image/webp"),
];

/// A picture of 30 by 20 pixels, no two of them alike.
fn picture(format: ImageFormat) -> Vec<u8> {
    let pixels = RgbImage::from_fn(30, 20, |x, y| Rgb([x as u8 * 8, y as u8 * 12, (x * y) as u8]));
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(pixels).write_to(&mut bytes, format).expect("written");
    bytes.into_inner()
}

fn animation(frames: usize, side: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    encoder.set_repeat(Repeat::Infinite).expect("written");
    for number in 0..frames {
        let pixels = RgbaImage::from_pixel(side, side, image::Rgba([number as u8, 0, 0, 255]));
        encoder.encode_frame(Frame::from_parts(pixels, 0, 0, Delay::from_numer_denom_ms(40, 1))).expect("written");
    }
    drop(encoder);
    bytes
}

/// EXIF with an orientation and a text that must not get out.
fn exif(orientation: u8) -> Vec<u8> {
    let mut block = orientation::write(orientation).expect("a block");
    block.extend_from_slice(SECRET.as_bytes());
    block
}

fn jpeg_segment(marker: u8, content: &[u8]) -> Vec<u8> {
    [&[0xFF, marker][..], &(content.len() as u16 + 2).to_be_bytes(), content].concat()
}

fn png_chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let crc = |bytes: &[u8]| {
        let step = |crc: u32, _| if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 };
        !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
    };
    let named = [&name[..], content].concat();
    [&(content.len() as u32).to_be_bytes()[..], &named, &crc(&named).to_be_bytes()].concat()
}

fn riff_chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let padding = if content.len() % 2 == 1 { &[0][..] } else { &[] };
    [&name[..], &(content.len() as u32).to_le_bytes(), content, padding].concat()
}

fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    let chunks = chunks.concat();
    [&b"RIFF"[..], &(chunks.len() as u32 + 4).to_le_bytes(), b"WEBP", &chunks].concat()
}

/// The picture with everything in it that does not belong into it, and its orientation where the format has one.
fn burdened(format: Format) -> Vec<u8> {
    let secret = SECRET.as_bytes();
    let tail = |mut bytes: Vec<u8>| {
        bytes.extend_from_slice(b"PK\x03\x04");
        bytes.extend_from_slice(secret);
        bytes
    };
    match format {
        Format::Jpeg => {
            let plain = picture(ImageFormat::Jpeg);
            // The encoder begins with JFIF's segment: 2 + 2 + 16 bytes.
            let (start, rest) = plain.split_at(20);
            let scan = rest.windows(2).rposition(|pair| pair == [0xFF, 0xDA]).expect("a scan");
            let (tables, scan) = rest.split_at(scan);
            tail(
                [
                    start,
                    &jpeg_segment(0xE1, &[&b"Exif\0\0"[..], &exif(6)].concat()),
                    &jpeg_segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0", secret].concat()),
                    &jpeg_segment(0xE2, &[b"MPF\0", secret].concat()),
                    &jpeg_segment(0xED, &[b"Photoshop 3.0\0", secret].concat()),
                    tables,
                    &jpeg_segment(0xFE, secret),
                    scan,
                ]
                .concat(),
            )
        }
        Format::Png => {
            let plain = picture(ImageFormat::Png);
            let (start, rest) = plain.split_at(33);
            let (rest, end) = rest.split_at(rest.len() - 12);
            tail(
                [
                    start,
                    &png_chunk(b"tEXt", &[b"Comment\0", secret].concat()),
                    &png_chunk(b"iTXt", &[b"XML:com.adobe.xmp\0\0\0\0\0", secret].concat()),
                    &png_chunk(b"prVt", secret),
                    rest,
                    &png_chunk(b"eXIf", &exif(6)),
                    end,
                ]
                .concat(),
            )
        }
        Format::Gif => {
            let mut bytes = animation(3, 4);
            bytes.pop();
            let block = |label: u8, blocks: &[&[u8]]| {
                let mut block = vec![0x21, label];
                for content in blocks {
                    block.push(content.len() as u8);
                    block.extend_from_slice(content);
                }
                block.push(0);
                block
            };
            bytes.extend(block(0xFE, &[secret]));
            bytes.extend(block(0xFF, &[b"XMP DataXMP", secret]));
            bytes.push(0x3B);
            tail(bytes)
        }
        Format::WebP => {
            let plain = picture(ImageFormat::WebP);
            let header = [&[0x08 | 0x04, 0, 0, 0][..], &29_u32.to_le_bytes()[..3], &19_u32.to_le_bytes()[..3]].concat();
            tail(riff(&[
                riff_chunk(b"VP8X", &header),
                plain[12..].to_vec(),
                riff_chunk(b"EXIF", &exif(6)),
                riff_chunk(b"XMP ", secret),
                riff_chunk(b"prVt", secret),
            ]))
        }
    }
}

fn inspected(bytes: &[u8]) -> Result<Picture, PictureError> {
    inspect(Bytes::copy_from_slice(bytes))
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

#[test]
fn a_plain_picture_of_each_format_keeps_its_pixels() {
    for (_, format, content_type) in FORMATS {
        let bytes = picture(format);
        let found = inspected(&bytes).expect("a picture");
        assert_eq!((found.content_type, found.width, found.height), (content_type, 30, 20));
        assert_eq!(image::load_from_memory(&found.bytes).ok(), image::load_from_memory(&bytes).ok(), "{format:?}");
        assert_eq!(inspected(&found.bytes).expect("a picture"), found, "cleaning twice is cleaning once");
    }
}

#[test]
fn nothing_but_the_picture_and_its_orientation_remains() {
    for (format, image_format, content_type) in FORMATS {
        let bytes = burdened(format);
        assert!(contains(&bytes, SECRET.as_bytes()), "{format:?}");
        let found = inspected(&bytes).expect("a picture");
        assert_eq!(found.content_type, content_type);
        for unwanted in [SECRET.as_bytes(), b"PK\x03\x04", b"xmp", b"XMP", b"MPF", b"Photoshop", b"prVt"] {
            assert!(!contains(&found.bytes, unwanted), "{format:?}: {unwanted:?}");
        }
        if format == Format::Gif {
            assert!(contains(&found.bytes, b"NETSCAPE2.0"), "it repeats as before");
            continue;
        }
        assert_eq!((found.width, found.height), (20, 30), "{format:?}: as wide as it was stored high");
        let mut decoder =
            image::ImageReader::with_format(Cursor::new(&found.bytes), image_format).into_decoder().expect("a decoder");
        let orientation = image::ImageDecoder::orientation(&mut decoder).expect("an orientation");
        assert_eq!(orientation, Orientation::Rotate90, "{format:?}");
        let pixels = |bytes: &[u8]| image::load_from_memory_with_format(bytes, image_format).expect("pixels");
        assert_eq!(pixels(&found.bytes), pixels(&picture(image_format)), "{format:?}");
        assert_eq!(inspected(&found.bytes).expect("a picture"), found, "cleaning twice is cleaning once");
    }
}

#[test]
fn a_truncated_picture_is_unreadable_wherever_it_ends() {
    for (format, ..) in FORMATS {
        let whole = inspected(&burdened(format)).expect("a picture").bytes;
        for length in 12..whole.len() {
            let outcome = inspected(&whole[..length]);
            assert!(matches!(outcome, Err(PictureError::Unreadable(_))), "{format:?} of {length}: {outcome:?}");
        }
    }
}

#[test]
fn a_picture_with_any_byte_changed_is_read_or_refused() {
    for (format, ..) in FORMATS {
        let whole = burdened(format);
        for at in 0..whole.len() {
            for value in [0x00, 0xFF, whole[at] ^ 0x01] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                // No panic, and no more than the file's own memory: that is all.
                let _ = inspected(&bytes);
            }
        }
    }
}

#[test]
fn other_content_is_unsupported() {
    let cases: [&[u8]; 9] = [
        b"",
        b"GIF",
        b"BM\x3a\0\0\0\0\0\0\0",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.7\n",
        b"PK\x03\x04\x14\0",
        b"\0\0\0\x20ftypavif\0\0\0\0",
        b"II*\0\x08\0\0\0",
        b"RIFF\0\0\0\0WAVE",
    ];
    for bytes in cases {
        assert_eq!(inspected(bytes), Err(PictureError::Unsupported), "{bytes:?}");
    }
}

#[test]
fn a_file_that_is_too_large_is_not_looked_at() {
    assert_eq!(inspected(&vec![0; PICTURE_BYTES + 1]), Err(PictureError::TooLarge));
    assert_eq!(inspected(&vec![0; PICTURE_BYTES]), Err(PictureError::Unsupported));
}

/// Headers that announce a flood of pixels, with little behind them.
#[test]
fn a_flood_of_pixels_is_refused_before_it_is_decoded() {
    let mut png = picture(ImageFormat::Png);
    let flood = [100_000_u32.to_be_bytes(), 100_000_u32.to_be_bytes()].concat();
    let header = png_chunk(b"IHDR", &[&flood[..], &[8, 6, 0, 0, 0]].concat());
    png.splice(8..33, header);

    let mut jpeg = picture(ImageFormat::Jpeg);
    let frame = jpeg.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("a frame");
    jpeg.splice(frame + 5..frame + 9, [0xFF, 0xFF, 0xFF, 0xFF]);

    let mut gif = picture(ImageFormat::Gif);
    gif.splice(6..10, [0xFF, 0xFF, 0xFF, 0xFF]);

    let mut frame_flood = picture(ImageFormat::Gif);
    let image = frame_flood.iter().rposition(|byte| *byte == 0x2C).expect("an image");
    frame_flood.splice(image + 5..image + 9, [0xFF, 0xFF, 0xFF, 0xFF]);

    let size = [&0xFF_FFFF_u32.to_le_bytes()[..3], &0xFF_FFFF_u32.to_le_bytes()[..3]].concat();
    let webp = riff(&[riff_chunk(b"VP8X", &[&[0_u8, 0, 0, 0][..], &size].concat())]);

    for (name, bytes) in [("png", png), ("jpeg", jpeg), ("gif", gif), ("gif frame", frame_flood), ("webp", webp)] {
        let outcome = inspected(&bytes);
        assert!(
            matches!(outcome, Err(PictureError::TooManyPixels | PictureError::Unreadable(_))),
            "{name}: {outcome:?}"
        );
    }
}

#[test]
fn an_animation_of_too_many_pixels_is_refused() {
    // Each frame is a few hundred bytes of file and a megapixel of work.
    assert_eq!(inspected(&animation(210, 1_000)), Err(PictureError::TooManyPixels));
    let few = inspected(&animation(20, 100)).expect("a picture");
    assert_eq!((few.width, few.height), (100, 100));
}

#[test]
fn an_animated_png_of_too_many_frames_is_refused() {
    let mut png = picture(ImageFormat::Png);
    let control = png_chunk(b"acTL", &[u32::MAX.to_be_bytes(), 0_u32.to_be_bytes()].concat());
    png.splice(33..33, control);
    let outcome = inspected(&png);
    assert!(matches!(outcome, Err(PictureError::TooManyPixels | PictureError::Unreadable(_))), "{outcome:?}");
}

#[test]
fn a_compressed_bomb_in_a_chunk_is_dropped_or_bounded() {
    // 64 KiB of deflated zeros in a colour profile: decoders that expand it must have a limit of their own.
    let mut png = picture(ImageFormat::Png);
    let profile = [&b"icc\0\0"[..], &vec![0x78; 64 << 10]].concat();
    png.splice(33..33, png_chunk(b"iCCP", &profile));
    png.splice(33..33, png_chunk(b"zTXt", &profile));
    let found = inspected(&png).expect("a picture");
    assert!(!contains(&found.bytes, b"zTXt"));
}

#[tokio::test]
async fn pictures_are_inspected_off_the_runtime() {
    let inspector = Inspector::new();
    let inspections = (0..8).map(|_| inspector.inspect(Bytes::from(picture(ImageFormat::Png))));
    for outcome in futures::future::join_all(inspections).await {
        assert_eq!(outcome.expect("a picture").content_type, "image/png");
    }
    let large = Bytes::from(vec![0; PICTURE_BYTES + 1]);
    assert_eq!(inspector.inspect(large).await, Err(PictureError::TooLarge));
}

#[test]
fn the_memory_that_a_picture_takes_is_known_before_it_is_decoded() {
    let png = |width, height| {
        let mut bytes = Vec::new();
        let picture = image::DynamicImage::new_luma8(width, height);
        picture.write_to(&mut std::io::Cursor::new(&mut bytes), image::ImageFormat::Png).expect("a PNG");
        prepare(bytes.into()).expect("a picture").memory
    };
    // Eight rows of it, and not the whole: pictures of 392 MB each were most of what a service under attack held.
    assert_eq!((png(10, 4), png(1_000, 100)), (320, 64_000));
    // A frame may be larger than the screen on which it is shown: here 300 x 200 pixels on one of 1 x 1.
    let frame: &[&[u8]] = &[b"GIF89a\x01\0\x01\0\0\0\0", b"\x2c\0\0\0\0\x2c\x01\xc8\0\0\x02\x01\0\0", b"\x3b"];
    assert_eq!(prepare(frame.concat().into()).expect("a picture").memory, 300 * 200 * 8);
}

#[tokio::test]
async fn pictures_wait_for_memory_and_give_it_back_whatever_becomes_of_them() {
    let inspector = Inspector::new();
    let mut bytes = Vec::new();
    let picture = image::DynamicImage::new_luma8(8, 8);
    picture.write_to(&mut std::io::Cursor::new(&mut bytes), image::ImageFormat::Png).expect("a PNG");
    let bytes = bytes::Bytes::from(bytes);
    let all = Arc::clone(&inspector.memory).acquire_many_owned(DECODING_MIB as u32).await.expect("all memory");
    let mut waiting = Box::pin(inspector.inspect(bytes.clone()));
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), waiting.as_mut()).await;
    assert!(early.is_err(), "there is no memory");
    drop(all);
    waiting.await.expect("inspected");
    let mut broken = bytes.to_vec();
    let middle = broken.len() - 20;
    broken[middle] ^= 0xff;
    assert!(inspector.inspect(broken.into()).await.is_err());
    assert_eq!(inspector.memory.available_permits(), DECODING_MIB);
    assert_eq!(inspector.turns.available_permits(), DECODED_AT_ONCE);
}
