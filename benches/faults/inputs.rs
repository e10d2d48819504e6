//! What attackers send that takes more than a line to make.

/// Pixels of a side of a large picture: just below the most that is taken, with 16 bits for each of four channels.
const SIDE: u32 = 7_000;
const PIXEL_BYTES: usize = 8;

/// What HTTP/2 begins with: its preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// `GET http://a/` in the static table of HPACK and one literal.
const HEADERS: [u8; 6] = [0x82, 0x86, 0x84, 0x41, 0x01, b'a'];
/// The end of a stream and of its headers.
const ENDS: u8 = 0x05;
/// The code of a stream that its client does not want any more.
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// A PNG of a few hundred kB that is 392 MB once it is decoded.
pub(crate) fn large_picture() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, SIDE, SIDE);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Sixteen);
    let mut writer = encoder.write_header().expect("a header");
    let mut rows = writer.stream_writer().expect("a writer");
    let row = vec![0; SIDE as usize * PIXEL_BYTES];
    for _ in 0..SIDE {
        std::io::Write::write_all(&mut rows, &row).expect("a row");
    }
    rows.finish().expect("a picture");
    writer.finish().expect("a picture");
    bytes
}

/// A form that uploads a picture, with `X` as its boundary.
pub(crate) fn picture_form(picture: &[u8]) -> Vec<u8> {
    let mut form = b"--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\
                     Content-Type: image/png\r\n\r\n"
        .to_vec();
    form.extend_from_slice(picture);
    form.extend_from_slice(b"\r\n--X--\r\n");
    form
}

/// The frames of so many requests by HTTP/2 that are each taken back at once; the first with what begins a connection.
pub(crate) fn given_back(count: u32) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(|number| {
        let stream = (2 * number + 1).to_be_bytes();
        let mut frames = if number == 0 { PREFACE.to_vec() } else { Vec::new() };
        frames.extend([0, 0, HEADERS.len() as u8, 0x01, ENDS]);
        frames.extend(stream);
        frames.extend(HEADERS);
        frames.extend([0, 0, CANCEL.len() as u8, 0x03, 0]);
        frames.extend(stream);
        frames.extend(CANCEL);
        frames
    })
}
