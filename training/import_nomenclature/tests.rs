use std::fs;

use super::*;

/// Imports files with these names and contents; the list as written, or the error.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        World { dir: tempfile::tempdir().expect("a directory") }
    }

    fn import(
        &self,
        taxonomy: Taxonomy,
        lang: Option<Language>,
        skip: bool,
        files: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        let mut paths = Vec::new();
        for (name, text) in files {
            let path = self.dir.path().join(name);
            fs::write(&path, text).expect("a file");
            paths.push(path);
        }
        let taxonomy_dir = self.dir.path().join("out");
        let date = NaiveDate::from_ymd_opt(2026, 11, 1);
        let target = national_file(&taxonomy_dir, taxonomy);
        run(Args { taxonomy, lang, taxonomy_dir, skip_bad_rows: skip, date, files: paths })?;
        let text = fs::read_to_string(target).expect("a list");
        Ok(text.lines().skip(1).map(|line| line.replace('\t', "|")).collect::<Vec<_>>().join("\n"))
    }
}

const EU_DE: &str = "Goods code,Start date,End date,Language,Hier. Pos.,Indent,Description
0100000000 80,31-12-1971,,DE,2,,LEBENDE TIERE
0101000000 80,01-01-1972,,DE,4,,Pferde
0101210000 10,01-01-2012,,DE,6,- ,Pferde:
0101210000 80,01-01-2012,,DE,6,- - ,\"reinrassig
 80|kg\"
0101290000 80,01-01-2012,,DE,6,- - ,andere
0101291000 80,01-01-2012,31-12-2030,DE,8,- - - ,zum Schlachten
";

#[test]
fn the_eu_list_has_headings_between_its_lines() {
    let world = World::new();
    let english = "Goods code,Start date,End date,Language,Hier. Pos.,Indent,Description\n\
        0101290000 80,01-01-2012,,EN,6,- - ,Other\n";
    let list = world.import(Taxonomy::Taric, None, false, &[("de.csv", EU_DE), ("en.csv", english)]).expect("a list");
    assert_eq!(
        list,
        "01|80|0||0|1971-12-31|||LEBENDE TIERE|
0101|80|1|01-80|0|1972-01-01|||Pferde|
010121|10|2|0101-80|0|2012-01-01|||Pferde:|
010121|80|3|010121-10|1|2012-01-01|||Pferde: reinrassig 80 kg|
010129|80|3|010121-10|0|2012-01-01|||Pferde: andere|Other
01012910|80|4|010129-80|1|2012-01-01|2030-12-31||zum Schlachten|"
    );
    let again = world.import(Taxonomy::Taric, None, false, &[("de.csv", EU_DE)]).expect("a list");
    assert_eq!(again, list, "a second import keeps the other language");
}

#[test]
fn a_code_that_is_gone_has_ended_and_leads_to_its_successor() {
    let world = World::new();
    world.import(Taxonomy::Taric, None, false, &[("a.csv", EU_DE)]).expect("a list");
    let next =
        EU_DE.replace("0101291000 80", "0101292000 80").replace("0101290000 80,01-01-2012,,DE,6,- - ,andere\n", "");
    let list = world.import(Taxonomy::Taric, None, false, &[("b.csv", &next)]).expect("a list");
    let of = |code: &str| list.lines().find(|line| line.starts_with(code)).map(str::to_owned).unwrap_or_default();
    assert_eq!(of("010129|"), "010129|80|3|010121-10|0|2012-01-01|2026-10-31||Pferde: andere|");
    assert!(of("01012910|").contains("|2026-10-31|01012920|"), "{}", of("01012910|"));
    assert!(of("01012920|").contains("|2030-12-31||"), "{}", of("01012920|"));
}

#[test]
fn the_forms_of_the_other_authorities_are_read() {
    let uk = "id,commodity__sid,commodity__code,commodity__suffix,commodity__description,commodity__validity_start,\
        commodity__validity_end,parent__sid,parent__code,parent__suffix\n\
        1,1,0101000000,80,Live horses,2021-01-01,#NA,9,0100000000,80\n\
        2,2,0101300000,80,Asses<br>only,2021-01-01,#NA,1,0101000000,80\n";
    let swiss = "hs8,designation_fr,designation_de,designation_it,designation_en,valid_from\n\
        0101.2110,a,im Kontingent,c,within the quota,2012-01-01\n1012190,a,andere,c,other,2012-01-01\n";
    let self_texts = "code;description;unit_id\n01012100;\"Zuchtpferde, reinrassig\";x\n";
    for (taxonomy, lang, text, wanted) in [
        (
            Taxonomy::Ukgt,
            None,
            uk,
            "0101|80|1|01-80|0|2021-01-01||||Live horses\n010130|80|2|0101-80|1|2021-01-01||||Asses only",
        ),
        (
            Taxonomy::Tares,
            None,
            swiss,
            "01012110|80|3||1|2012-01-01|||im Kontingent|within the quota\n\
             01012190|80|3||1|2012-01-01|||andere|other",
        ),
        (Taxonomy::Taric, Some(Language::De), self_texts, "010121|80|2||1||||Zuchtpferde, reinrassig|"),
    ] {
        let list = World::new().import(taxonomy, lang, false, &[("list.csv", text)]).expect("a list");
        assert_eq!(list, wanted, "{taxonomy}");
    }
}

#[test]
fn texts_alone_end_no_codes() {
    let world = World::new();
    let before = world.import(Taxonomy::Taric, None, false, &[("a.csv", EU_DE)]).expect("a list");
    let texts = "code;description\n01012910;Schlachtpferde\n";
    let after = world.import(Taxonomy::Taric, Some(Language::De), false, &[("t.csv", texts)]).expect("a list");
    assert_eq!(after, before.replace("zum Schlachten", "Schlachtpferde"));
}

#[test]
fn a_bad_row_stops_the_import_unless_it_is_to_be_skipped() {
    let world = World::new();
    let before = world.import(Taxonomy::Taric, None, false, &[("a.csv", EU_DE)]).expect("a list");
    for bad in [
        "01x1300000 80,01-01-2012,,DE,6,- ,Esel",
        "0101300000 80,2012/13/40,,DE,6,- ,Esel",
        "0101300000 80,01-01-2012,,FR,6,- ,Esel",
        "0101300000 80,01-01-2012,,DE,6,x,Esel",
        "0101300000 80,01-01-2012,,DE,6,- ,",
        "0101300000 80,01-01-2012,01-01-2011,DE,6,- ,Esel",
        "010130000000 80,01-01-2012,,DE,6,- ,Esel",
    ] {
        let text = format!("{EU_DE}{bad}\n");
        assert!(world.import(Taxonomy::Taric, None, false, &[("b.csv", &text)]).is_err(), "{bad}");
        let skipped = world.import(Taxonomy::Taric, None, true, &[("b.csv", &text)]).expect("a list");
        assert_eq!(skipped, before, "{bad}");
    }
    assert!(world.import(Taxonomy::Taric, None, false, &[("c.csv", "a,b\n1,2\n")]).is_err());
    assert!(world.import(Taxonomy::Taric, None, false, &[("d.csv", "code,description\n0101,x\n")]).is_err());
}
