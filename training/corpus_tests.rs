//! Rows of sections and templates, and the faults of lines.

use super::*;

fn parse(text: &str) -> Reader {
    let mut reader = Reader::new("61.txt".to_owned());
    reader.read(text);
    reader
}

#[test]
fn sections_slots_and_templates_give_rows() {
    let reader = parse(
        "# comment\n$dark = black | {deep|} navy\n$any = red | $dark\n[610910 de]\nT-Shirt {nicht} :: Weich\n\n[6109 en x3]\nTee {$any} {XL|}\n",
    );
    assert_eq!(reader.faults, []);
    assert_eq!(reader.rows[0].name, "T-Shirt {nicht}");
    assert_eq!(reader.rows[0].description.as_deref(), Some("Weich"));
    let generated: Vec<&str> = reader.rows[1..].iter().map(|row| row.name.as_str()).collect();
    assert_eq!(generated.len(), 3);
    assert!(generated.iter().all(|name| name.starts_with("Tee ") && !name.contains(['{', '$', '|'])), "{generated:?}");
    assert!(reader.rows[1..].iter().all(|row| row.generated && row.group == reader.rows[1].group));
}

#[test]
fn a_row_has_a_name_and_may_have_a_description_and_tags() {
    let reader =
        parse("[610910 en]\nLuna\nLuna :: Cotton tee\nLuna :: Cotton tee ## Women > Tops | Sale\nTee ## Tops |\n");
    assert_eq!(reader.faults, []);
    let shown = |row: &Row| (row.name.clone(), row.description.clone().unwrap_or_default(), row.tags.join("+"));
    let rows: Vec<_> = reader.rows.iter().map(shown).collect();
    let expected = [
        ("Luna", "", ""),
        ("Luna", "Cotton tee", ""),
        ("Luna", "Cotton tee", "Women > Tops+Sale"),
        ("Tee", "", "Tops"),
    ];
    assert_eq!(rows, expected.map(|(name, text, tags)| (name.to_owned(), text.to_owned(), tags.to_owned())));
}

#[test]
fn faults_name_their_line() {
    for (text, line, what) in [
        ("Hemd", 1, "before a section"),
        ("[610910 fr]\nx", 1, "is written"),
        ("[620910 de]\nx", 1, "another chapter"),
        ("[61091 de]", 1, "is written"),
        ("[610910 de]\na :: b :: c", 2, "two \" :: \""),
        ("[610910 de]\na ## b ## c", 2, "two \" ## \""),
        ("[610910 de x2]\na {b", 2, "not closed"),
        ("[610910 de x2]\na {$none}", 2, "unknown slot"),
        ("$a = {$a}\n[610910 de x2]\n{$a}", 3, "nested"),
    ] {
        let reader = parse(text);
        let fault = reader.faults.first().expect(text);
        assert!(fault.place.line == line && fault.what.contains(what), "{text}: {fault}");
    }
}

#[test]
fn marks_are_read_by_kind() {
    let marks = Marks::read(
        "# colours\nrot | blau\n\nnew in box\n[alone]\nKüche | box\n[alone in a description]\n# packing\nBeutel\n",
    );
    assert_eq!(marks.vague, ["rot", "blau", "new in box"]);
    assert_eq!(marks.want_a_good, ["Küche", "box"]);
    assert_eq!(marks.describe, ["Beutel"]);
}
