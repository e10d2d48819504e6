//! Text with separators: CSV with comma, semicolon or tab, in UTF-8, UTF-16 or Windows-1252.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::files::{FileError, Line, Lines, MAX_CELL_BYTES, MAX_COLUMNS, MAX_LINE_BYTES, Source, read_start};

/// Bytes that are read at one time.
const BUFFER_BYTES: usize = 256 << 10;
/// What may separate cells; the first of those that are equally frequent in the header is taken.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];
/// Most bytes of a header.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// What is wrong with a cell where a file in UTF-8 has bytes that are none.
const STRAY: &str = "holds bytes that are no UTF-8, which most of the file is";

/// The lines of a text.
pub(super) struct TextLines<S: Read> {
    reader: csv::Reader<Decoding<S>>,
    record: csv::StringRecord,
    header: Vec<String>,
    /// Lines before the header.
    skipped: u64,
    /// Whether some bytes are no characters of its encoding; U+FFFD stands for them.
    has_stray: bool,
    /// Whether lines end with CR and LF: the reader then ends a record before its LF.
    ends_with_crlf: bool,
    /// Bytes that were read since the last line.
    since: Arc<AtomicU64>,
}

impl<S: Source> TextLines<S> {
    pub(super) fn open(mut source: S) -> Result<TextLines<S>, FileError> {
        let (encoding, has_stray) = encoding(&mut source)?;
        source.rewind()?;
        let mut first = String::new();
        BufReader::new(Decoding::new(&mut source, encoding)).take(MAX_HEADER_BYTES).read_line(&mut first)?;
        source.rewind()?;
        // Excel's own way of naming the separator, on a line before the header.
        let named = first.trim_end_matches(['\r', '\n']).strip_prefix("sep=");
        let named = named.filter(|name| name.len() == 1).map(|name| name.as_bytes()[0]);
        let mut decoding = Decoding::new(source, encoding);
        let ends_with_crlf = first.ends_with("\r\n");
        decoding.wants_newline = !ends_with_crlf;
        let since = decoding.since.clone();
        let skipped = u64::from(named.is_some());
        if named.is_some() {
            skip_line(&mut decoding)?;
        }
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(named.unwrap_or_else(|| separator(&first)))
            .flexible(true)
            .buffer_capacity(BUFFER_BYTES)
            .from_reader(decoding);
        let header = reader.headers().map_err(|error| broken(&error, 1 + skipped))?;
        let header: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
        if header.iter().all(String::is_empty) {
            return Err(FileError::at(1, "the file has no header that names its columns"));
        }
        if header.len() > MAX_COLUMNS {
            return Err(FileError::at(1, format!("the file has more than {MAX_COLUMNS} columns")));
        }
        if let Some(name) = header.iter().find(|name| has_stray && holds_stray(name)) {
            return Err(FileError::at(1, format!("the name of the column \"{name}\" {STRAY}")));
        }
        Ok(TextLines { reader, record: csv::StringRecord::new(), header, skipped, has_stray, ends_with_crlf, since })
    }
}

impl<S: Source> Lines for TextLines<S> {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn next_line(&mut self) -> Result<Option<Line>, FileError> {
        loop {
            self.since.store(0, Relaxed);
            let read = self.reader.read_record(&mut self.record);
            let ends = self.reader.position().line() + self.skipped;
            if !read.map_err(|error| broken(&error, ends))? {
                return Ok(None);
            }
            if self.record.iter().all(str::is_empty) {
                continue;
            }
            let within = self.record.iter().map(|cell| cell.matches('\n').count() as u64).sum::<u64>();
            let number = ends.saturating_sub(within + u64::from(!self.ends_with_crlf));
            if self.record.iter().any(|cell| cell.len() > MAX_CELL_BYTES) {
                return Err(FileError::at(
                    number,
                    format!("a cell has more than {MAX_CELL_BYTES} bytes; is a quote left open?"),
                ));
            }
            // One cell too many is enough to refuse a line; millions of empty ones would take many times its bytes.
            let cells: Vec<String> = self.record.iter().take(MAX_COLUMNS + 1).map(str::to_owned).collect();
            let mut faults = BTreeMap::new();
            if self.has_stray {
                let stray = cells.iter().enumerate().filter(|(_, cell)| holds_stray(cell));
                faults.extend(stray.map(|(at, _)| (at, STRAY.to_owned())));
            }
            return Ok(Some(Line { number, cells, faults }));
        }
    }
}

fn holds_stray(cell: &str) -> bool {
    cell.contains(char::REPLACEMENT_CHARACTER)
}

fn broken(error: &csv::Error, line: u64) -> FileError {
    FileError::at(line, error.to_string())
}

/// The separator that is most frequent in a header, outside of quotes.
fn separator(header: &str) -> u8 {
    let mut counts = [0; SEPARATORS.len()];
    let mut quoted = false;
    for byte in header.bytes() {
        quoted ^= byte == b'"';
        if let Some(at) = SEPARATORS.iter().position(|separator| *separator == byte && !quoted) {
            counts[at] += 1;
        }
    }
    let most = counts.iter().max().copied().unwrap_or_default();
    counts.iter().position(|count| *count == most).map_or(SEPARATORS[0], |at| SEPARATORS[at])
}

fn skip_line(source: &mut impl Read) -> io::Result<()> {
    let mut byte = [0];
    while source.read(&mut byte)? == 1 && byte[0] != b'\n' {}
    Ok(())
}

/// The encoding of a text, and whether some of its bytes are no characters of it: what its byte-order mark says, else
/// UTF-8 when it has more characters of several bytes than bytes that cannot be UTF-8, or none of either, else
/// Windows-1252. One stray byte in a long file does not turn all its umlauts into others, and hardly any text in
/// Windows-1252 has letters in a row that look like UTF-8. UTF-16 without a mark is told by the zeros of its first
/// characters.
fn encoding(source: &mut (impl Read + Seek)) -> Result<(&'static Encoding, bool), FileError> {
    let mut start = [0; 4];
    let length = read_start(source, &mut start)?;
    source.rewind()?;
    let marked = Encoding::for_bom(&start[..length]).map(|(encoding, _)| encoding);
    match (marked, start) {
        (Some(encoding), _) if encoding != UTF_8 => return Ok((encoding, false)),
        (None, [0, a, 0, b]) if a != 0 && b != 0 => return Ok((UTF_16BE, false)),
        (None, [a, 0, b, 0]) if a != 0 && b != 0 => return Ok((UTF_16LE, false)),
        _ => {}
    }
    let (whole, stray) = utf8_or_not(source)?;
    if stray == 0 || whole > stray || marked.is_some() { Ok((UTF_8, stray > 0)) } else { Ok((WINDOWS_1252, false)) }
}

/// How many characters of several bytes there are in UTF-8, and how many bytes that cannot be UTF-8.
fn utf8_or_not(source: &mut impl Read) -> io::Result<(u64, u64)> {
    let several = |text: &[u8]| text.iter().filter(|byte| **byte >= 0xC0).count() as u64;
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut kept, mut whole, mut stray) = (0, 0, 0);
    loop {
        let read = source.read(&mut buffer[kept..])?;
        let end = kept + read;
        let mut text = &buffer[..end];
        kept = 0;
        while let Err(error) = std::str::from_utf8(text) {
            let (valid, rest) = text.split_at(error.valid_up_to());
            whole += several(valid);
            // A character may go on in what is read next.
            if error.error_len().is_none() && read > 0 {
                kept = rest.len();
                text = &[];
                break;
            }
            let length = error.error_len().unwrap_or(rest.len());
            stray += length as u64;
            text = &rest[length..];
        }
        whole += several(text);
        if read == 0 {
            return Ok((whole, stray));
        }
        buffer.copy_within(end - kept..end, 0);
    }
}

/// A text as UTF-8, without its byte-order mark. What is not a character of its encoding becomes U+FFFD.
struct Decoding<S> {
    source: S,
    decoder: Decoder,
    raw: Vec<u8>,
    /// What is read and not yet decoded.
    rest: std::ops::Range<usize>,
    ended: bool,
    /// Decoded text that did not fit into what was asked for.
    decoded: Vec<u8>,
    given: usize,
    /// Whether a last line without an end gets one, so that all lines are counted alike.
    wants_newline: bool,
    last: u8,
    since: Arc<AtomicU64>,
}

impl<S: Read> Decoding<S> {
    fn new(source: S, encoding: &'static Encoding) -> Decoding<S> {
        Decoding {
            source,
            decoder: encoding.new_decoder(),
            raw: vec![0; BUFFER_BYTES],
            rest: 0..0,
            ended: false,
            decoded: Vec::new(),
            given: 0,
            wants_newline: false,
            last: b'\n',
            since: Arc::default(),
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.given = 0;
        self.decoded.resize(BUFFER_BYTES, 0);
        let mut length = 0;
        while length == 0 && !self.ended {
            if self.rest.is_empty() {
                self.rest = 0..self.source.read(&mut self.raw)?;
            }
            let last = self.rest.is_empty();
            let (result, read, written, _) =
                self.decoder.decode_to_utf8(&self.raw[self.rest.clone()], &mut self.decoded, last);
            self.rest.start += read;
            length = written;
            self.ended = last && result == CoderResult::InputEmpty;
        }
        self.decoded.truncate(length);
        self.last = self.decoded.last().copied().unwrap_or(self.last);
        if length == 0 && self.wants_newline && self.last != b'\n' {
            self.decoded.push(b'\n');
            self.last = b'\n';
        }
        if self.since.fetch_add(length as u64, Relaxed) > MAX_LINE_BYTES as u64 {
            return Err(io::Error::other(format!(
                "a line has more than {MAX_LINE_BYTES} bytes; is a quote left open?"
            )));
        }
        Ok(())
    }
}

impl<S: Read> Read for Decoding<S> {
    fn read(&mut self, wanted: &mut [u8]) -> io::Result<usize> {
        if self.given == self.decoded.len() {
            self.fill()?;
        }
        let length = wanted.len().min(self.decoded.len() - self.given);
        wanted[..length].copy_from_slice(&self.decoded[self.given..self.given + length]);
        self.given += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::files::open;

    fn read(bytes: &[u8]) -> Result<(Vec<String>, Vec<Line>), FileError> {
        let mut lines = open(Cursor::new(bytes.to_vec()))?;
        let mut found = Vec::new();
        while let Some(line) = lines.next_line()? {
            found.push(line);
        }
        Ok((lines.header().to_vec(), found))
    }

    fn utf16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    }

    #[test]
    fn encodings_and_separators_are_told_by_the_content() {
        let text = "productId;de:productName\n1;Gemüse „grün“ – 5 €\n\n2;\"a;b\nc\"\n";
        let latin = WINDOWS_1252.encode(text).0.into_owned();
        let marked = |mark: &[u8], text: Vec<u8>| [mark, &text].concat();
        for (name, bytes) in [
            ("utf-8", text.as_bytes().to_vec()),
            ("utf-8 with a mark", marked(b"\xef\xbb\xbf", text.into())),
            ("windows-1252", latin),
            ("utf-16le", marked(b"\xff\xfe", utf16(text, u16::to_le_bytes))),
            ("utf-16be", marked(b"\xfe\xff", utf16(text, u16::to_be_bytes))),
            ("utf-16le without a mark", utf16(text, u16::to_le_bytes)),
            ("utf-16be without a mark", utf16(text, u16::to_be_bytes)),
            ("comma", text.replace(';', ",").into()),
            ("tab", text.replace(';', "\t").into()),
            ("without a last end", text.trim_end().into()),
            ("with CRLF", text.replace('\n', "\r\n").into()),
        ] {
            let (header, lines) = read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(header, ["productId", "de:productName"], "{name}");
            let numbers: Vec<u64> = lines.iter().map(|line| line.number).collect();
            assert_eq!(numbers, [2, 4], "{name}");
            assert_eq!(lines[0].cells, ["1", "Gemüse „grün“ – 5 €"], "{name}");
            assert_eq!((lines[1].cells.len(), lines[1].cells[1].lines().count()), (2, 2), "{name}");
        }
        let (header, lines) = read(b"sep=\t\r\nproductId\ta;b\r\n1\tx\r\n").expect("named, though it is blank");
        assert_eq!((header.len(), lines[0].number, lines[0].cells[1].as_str()), (2, 3, "x"));
        let (header, lines) = read(b"sep=;\nproductId;a,b\n1;x\n").expect("named by a line of its own");
        assert_eq!(
            (header.len(), lines[0].number, lines[0].cells.as_slice()),
            (2, 3, ["1".into(), "x".into()].as_slice())
        );
    }

    #[test]
    fn a_character_that_lies_across_two_reads_is_whole() {
        for before in BUFFER_BYTES - 30..BUFFER_BYTES + 1 {
            let text = format!("productId\n{}ü€\n", "x".repeat(before));
            let told = encoding(&mut Cursor::new(text.as_bytes())).expect("an encoding");
            assert_eq!(told, (UTF_8, false), "{before}");
            let mut decoded = String::new();
            Decoding::new(text.as_bytes(), UTF_8).read_to_string(&mut decoded).expect("text");
            assert_eq!(decoded, text);
        }
        let cut = "é".as_bytes()[..1].to_vec();
        let told = encoding(&mut Cursor::new(cut)).expect("an encoding");
        assert_eq!(told, (WINDOWS_1252, false), "no character at the end");
    }

    #[test]
    fn stray_bytes_are_faults_of_their_cells_and_make_no_other_encoding() {
        let good = "productId,n\n1,Käse\n2,Größe \u{fffd}\n";
        let (_, lines) = read(good.as_bytes()).expect("readable");
        assert!(lines.iter().all(|line| line.faults.is_empty()), "a character that is meant");
        for (mark, end) in
            [("", &b"3,K\xe4se\n"[..]), ("", b"3,cut \xc3"), ("\u{feff}", b"3,\xe4\xe4\xe4\xe4\xe4\xe4\n")]
        {
            let bytes = [mark.as_bytes(), &good.as_bytes()[..good.len() - " \u{fffd}\n".len()], b"\n", end].concat();
            let (_, lines) = read(&bytes).expect("readable");
            assert_eq!((lines[0].cells[1].as_str(), lines[1].cells[1].as_str()), ("Käse", "Größe"));
            let faults: Vec<_> =
                lines.iter().flat_map(|line| line.faults.keys().map(|at| (line.number, *at))).collect();
            assert_eq!(faults, [(4, 1)]);
        }
        let (_, lines) = read(b"productId,n\n1,K\xe4se Gr\xf6\xdfe\n2,\xc3\xa4\n").expect("Windows-1252");
        assert_eq!((lines[0].cells[1].as_str(), lines[1].cells[1].as_str()), ("Käse Größe", "Ã¤"));
        let header = [&b"productId,gr\xf6\n1,"[..], "äöü\n".as_bytes()].concat();
        assert!(read(&header).map(|_| ()).expect_err("refused").to_string().contains("name of the column"));
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_place() {
        for (bytes, place) in [
            (&b""[..], "line 1"),
            (b"\n\n", "line 1"),
            (b",,\n1,2,3\n", "line 1"),
            (b"PK\x03\x04 and nothing", "line 1"),
            (b"<html></html>", "line 1"),
        ] {
            let told = read(bytes).map(|_| ()).expect_err("refused").to_string();
            assert!(told.contains(place), "{told}");
        }
        let many = format!("productId,n\n1{}\n", ",".repeat(MAX_COLUMNS * 5));
        let (_, lines) = read(many.as_bytes()).expect("a line that is refused later");
        assert_eq!(lines[0].cells.len(), MAX_COLUMNS + 1);
        let endless = format!("productId,n\n1,\"{}", "x,\n".repeat(8 << 20));
        assert!(read(endless.as_bytes()).map(|_| ()).expect_err("refused").to_string().contains("quote"));
        let open_quote = format!("productId,n\n1,\"{}", "x".repeat(MAX_CELL_BYTES + 1));
        assert!(read(open_quote.as_bytes()).map(|_| ()).expect_err("refused").to_string().contains("a cell has more"));
    }
}
