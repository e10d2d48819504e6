//! Feeds in XML: the items of RSS and the entries of Atom, as Google Merchant takes them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{BufReader, Read};

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::files::limited::{Limited, Open, Stretch};
use crate::files::{FileError, Line, Lines, MAX_CELL_BYTES, MAX_COLUMNS, MAX_LINE_BYTES, MAX_STRETCH_BYTES, Source};

/// What an item may be called.
const ITEMS: [&str; 2] = ["item", "entry"];

/// The items of a feed.
pub(super) struct FeedLines<S: Read> {
    items: Items<S>,
    header: Vec<String>,
    /// Names of the header by their places.
    places: HashMap<String, usize>,
}

impl<S: Source> FeedLines<S> {
    pub(super) fn open(mut source: S) -> Result<FeedLines<S>, FileError> {
        // A feed has no header: its names are those that any item has.
        let (mut header, mut places, mut bytes) = (Vec::new(), HashMap::new(), 0);
        let mut items = Items::new(&mut source);
        while let Some((number, fields)) = items.next_item()? {
            for (name, _) in fields {
                if let Entry::Vacant(place) = places.entry(name) {
                    bytes += place.key().len();
                    header.push(place.key().clone());
                    place.insert(header.len() - 1);
                }
            }
            if bytes > MAX_LINE_BYTES {
                return Err(FileError::at(number, format!("names of fields have more than {MAX_LINE_BYTES} bytes")));
            }
            if header.len() > MAX_COLUMNS {
                return Err(FileError::at(number, format!("the feed has more than {MAX_COLUMNS} kinds of fields")));
            }
        }
        if header.is_empty() {
            return Err(FileError::at(1, "the file is XML without any <item> or <entry>"));
        }
        source.rewind()?;
        Ok(FeedLines { items: Items::new(source), header, places })
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
            // Of a field that is repeated the first counts.
            if let Some(cell) = self.places.get(&name).map(|at| &mut cells[*at]).filter(|cell| cell.is_empty()) {
                *cell = text;
            }
        }
        Ok(Some(Line { number, cells, ..Line::default() }))
    }
}

/// The number of an item, and its fields with their texts.
type Item = (u64, Vec<(String, String)>);

struct Items<S: Read> {
    reader: Reader<BufReader<Limited<S>>>,
    /// What is read for one event.
    stretch: Stretch,
    open: Open,
    buffer: Vec<u8>,
    number: u64,
}

impl<S: Read> Items<S> {
    fn new(source: S) -> Items<S> {
        let source = Limited::new(source, MAX_STRETCH_BYTES);
        let stretch = source.stretch();
        let reader = Reader::from_reader(BufReader::new(source));
        Items { reader, stretch, open: Open::default(), buffer: Vec::new(), number: 0 }
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
            let event = self.reader.read_event_into(&mut self.buffer).map_err(|error| broken(&error))?;
            self.open.follow(&event).map_err(|error| broken(&error))?;
            match event {
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
    fn of_a_field_that_is_repeated_the_first_counts() {
        let fields: String = (0..500).map(|at| format!("<f{at}>{at}</f{at}><f{at}>again</f{at}>")).collect();
        let feed = format!("<rss><item><f7></f7></item><item>{fields}</item></rss>");
        let mut lines = open(Cursor::new(feed.into_bytes())).expect("a feed");
        assert_eq!((lines.header().len(), lines.header()[0].as_str()), (500, "f7"));
        lines.next_line().expect("readable").expect("an item");
        let second = lines.next_line().expect("readable").expect("an item").cells;
        assert_eq!((second[0].as_str(), second[1].as_str(), second[499].as_str()), ("7", "0", "499"));
    }

    #[test]
    fn tags_that_stay_open_are_refused_before_they_fill_the_memory() {
        for feed in ["<a>".repeat(100), format!("<rss><item><id>{}", "<a>".repeat(100))] {
            let told = open(Cursor::new(feed.into_bytes())).map(|_| ()).expect_err("refused").to_string();
            assert!(told.contains("open within each other"), "{told}");
        }
        let deep = format!("<rss><item><id>1{}{}</id></item></rss>", "<a>".repeat(60), "</a>".repeat(60));
        assert!(open(Cursor::new(deep.into_bytes())).is_ok());
    }

    #[test]
    fn names_of_fields_are_bounded_together() {
        let item = |at: usize| {
            let name = format!("f{at}{}", "x".repeat(3 << 20));
            format!("<item><{name}></{name}></item>")
        };
        let feed: String = (0..7).map(item).collect();
        let told = open(Cursor::new(format!("<rss>{feed}</rss>").into_bytes())).map(|_| ()).expect_err("refused");
        assert!(told.to_string().contains("names of fields"), "{told}");
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
