//! Feeds in XML: the items of RSS and the entries of Atom, as Google Merchant takes them.

use std::io::{BufReader, Read};

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::files::limited::{Limited, Stretch};
use crate::files::{FileError, Line, Lines, MAX_CELL_BYTES, MAX_COLUMNS, MAX_LINE_BYTES, MAX_STRETCH_BYTES, Source};

/// What an item may be called.
const ITEMS: [&str; 2] = ["item", "entry"];

/// The items of a feed.
pub(super) struct FeedLines<S: Read> {
    items: Items<S>,
    header: Vec<String>,
}

impl<S: Source> FeedLines<S> {
    pub(super) fn open(mut source: S) -> Result<FeedLines<S>, FileError> {
        // A feed has no header: its names are those that any item has.
        let mut header: Vec<String> = Vec::new();
        let mut items = Items::new(&mut source);
        while let Some((number, fields)) = items.next_item()? {
            for (name, _) in fields {
                if !header.contains(&name) {
                    header.push(name);
                }
            }
            if header.len() > MAX_COLUMNS {
                return Err(FileError::at(number, format!("the feed has more than {MAX_COLUMNS} kinds of fields")));
            }
        }
        if header.is_empty() {
            return Err(FileError::at(1, "the file is XML without any <item> or <entry>"));
        }
        source.rewind()?;
        Ok(FeedLines { items: Items::new(source), header })
    }
}

impl<S: Source> Lines for FeedLines<S> {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn next_line(&mut self) -> Result<Option<Line>, FileError> {
        let Some((number, fields)) = self.items.next_item()? else { return Ok(None) };
        let mut cells = vec![String::new(); self.header.len()];
        for (name, text) in fields {
            let at = self.header.iter().position(|known| *known == name);
            // Of a field that is repeated the first counts.
            if let Some(cell) = at.map(|at| &mut cells[at]).filter(|cell| cell.is_empty()) {
                *cell = text;
            }
        }
        Ok(Some(Line { number, cells }))
    }
}

/// The number of an item, and its fields with their texts.
type Item = (u64, Vec<(String, String)>);

struct Items<S: Read> {
    reader: Reader<BufReader<Limited<S>>>,
    /// What is read for one event.
    stretch: Stretch,
    buffer: Vec<u8>,
    number: u64,
}

impl<S: Read> Items<S> {
    fn new(source: S) -> Items<S> {
        let source = Limited::new(source, MAX_STRETCH_BYTES);
        let stretch = source.stretch();
        Items { reader: Reader::from_reader(BufReader::new(source)), stretch, buffer: Vec::new(), number: 0 }
    }

    fn next_item(&mut self) -> Result<Option<Item>, FileError> {
        // How deep below the item; fields are at 1, and what is within a field belongs to no text.
        let mut depth: Option<usize> = None;
        let (mut fields, mut name, mut text) = (Vec::new(), String::new(), String::new());
        let mut bytes = 0;
        loop {
            self.buffer.clear();
            self.stretch.begin();
            let item = self.number + 1;
            let broken = |error: &dyn std::fmt::Display| {
                FileError::at(item, format!("item {item} is not readable XML: {error}"))
            };
            match self.reader.read_event_into(&mut self.buffer).map_err(|error| broken(&error))? {
                Event::Start(start) => match depth {
                    None if ITEMS.contains(&start.local_name().into_inner()) => depth = Some(0),
                    None => {}
                    Some(within) => {
                        depth = Some(within + 1);
                        if within == 0 {
                            name = start.name().into_inner().to_owned();
                            text.clear();
                        }
                    }
                },
                Event::End(_) => match depth {
                    Some(0) => {
                        self.number = item;
                        return Ok(Some((item, fields)));
                    }
                    Some(within) => {
                        if within == 1 {
                            bytes += name.len() + text.len();
                            if bytes > MAX_LINE_BYTES {
                                return Err(broken(&format!("its fields have more than {MAX_LINE_BYTES} bytes")));
                            }
                            fields.push((std::mem::take(&mut name), text.trim().to_owned()));
                            if fields.len() > MAX_COLUMNS {
                                return Err(broken(&format!("more than {MAX_COLUMNS} fields")));
                            }
                        }
                        depth = Some(within - 1);
                    }
                    None => {}
                },
                Event::Text(part) if depth == Some(1) => text.push_str(&part),
                Event::CData(part) if depth == Some(1) => text.push_str(&part),
                Event::GeneralRef(entity) if depth == Some(1) => {
                    match entity.resolve_char_ref().map_err(|error| broken(&error))? {
                        Some(character) => text.push(character),
                        // No entities but those of XML itself: a feed defines none, and a hostile one would.
                        None => {
                            text.push_str(quick_xml::escape::resolve_predefined_entity(&entity).unwrap_or_default())
                        }
                    }
                }
                Event::Eof if depth.is_some() => return Err(broken(&"it ends within the item")),
                Event::Eof => return Ok(None),
                _ => {}
            }
            if text.len() > MAX_CELL_BYTES {
                return Err(broken(&format!("a field has more than {MAX_CELL_BYTES} bytes")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use crate::files::{MAX_CELL_BYTES, MAX_LINE_BYTES, open};

    #[test]
    fn a_feed_is_read_item_by_item() {
        let feed = "<?xml version=\"1.0\"?>\n<rss xmlns:g=\"http://base.google.com/ns/1.0\" version=\"2.0\"><channel>\
            <title>Shop</title><item><g:id>1</g:id><title>K&#228;se &amp; Brot</title>\
            <g:shipping><g:country>DE</g:country></g:shipping></item>\
            <item><g:id>2</g:id><title/><g:brand><![CDATA[<A>]]></g:brand></item></channel></rss>";
        let mut lines = open(Cursor::new(feed.as_bytes().to_vec())).expect("a feed");
        assert_eq!(lines.header(), ["g:id", "title", "g:shipping", "g:brand"]);
        let first = lines.next_line().expect("readable").expect("an item");
        assert_eq!((first.number, first.cells.join(";")), (1, "1;Käse & Brot;;".to_owned()));
        let second = lines.next_line().expect("readable").expect("an item");
        assert_eq!((second.number, second.cells.join(";")), (2, "2;;;<A>".to_owned()));
        assert_eq!(lines.next_line().expect("readable"), None);
    }

    #[test]
    fn a_broken_feed_is_refused() {
        let endless = |around: [&str; 2]| format!("<rss><item>{}{}{}", around[0], "x".repeat(5 << 20), around[1]);
        let wide = format!("<d>{}</d>", "x".repeat(MAX_CELL_BYTES)).repeat(MAX_LINE_BYTES / MAX_CELL_BYTES);
        for feed in [
            "<rss></rss>".to_owned(),
            "<rss><item><id>1</id></rss>".to_owned(),
            "<rss><item><id>1</id>".to_owned(),
            endless(["<id>", "</id></item></rss>"]),
            endless(["<id>1</id><!--", "--></item></rss>"]),
            endless(["<id><![CDATA[", "]]></id></item></rss>"]),
            format!("<rss><item>{wide}</item></rss>"),
        ] {
            let told = open(Cursor::new(feed.clone().into_bytes())).map(|_| ()).expect_err("refused").to_string();
            assert!(feed.len() < 100 || told.contains("bytes"), "{told}");
        }
    }
}
