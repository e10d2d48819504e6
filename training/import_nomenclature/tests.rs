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
        run(Args { taxonomy, lang, taxonomy_dir, skip_bad_rows: skip, facts_only: false, date, files: paths })?;
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
fn codes_of_a_list_of_facts_lead_on_where_one_line_took_the_place_of_one() {
    let world = World::new();
    let target = national_file(&world.dir.path().join("out"), Taxonomy::Taric);
    fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
    // 0101 29 has one line that changes its number, 0101 21 is divided anew, 0101 30 loses a line.
    let facts = "01012910\t1\t2012-01-01\t\t\n01012110\t1\t2012-01-01\t\t\n01012190\t1\t2012-01-01\t\t\n\
        01013010\t1\t2012-01-01\t\t\n01013090\t1\t2012-01-01\t\t\n";
    fs::write(&target, facts).expect("a list");
    let line = |code: &str| format!("{code}00 80,01-11-2026,,DE,8,- - ,Text {code}\n");
    let codes = ["01012920", "01012120", "01012130", "01013090", "01019010"];
    let list = format!(
        "Goods code,Start date,End date,Language,Hier. Pos.,Indent,Description\n\
         0101000000 80,01-01-1972,,DE,4,,Pferde\n{}",
        codes.map(line).concat()
    );
    let list = world.import(Taxonomy::Taric, None, false, &[("b.csv", &list)]).expect("a list");
    let successor = |code: &str| {
        let line = list.lines().find(|line| line.starts_with(&format!("{code}|"))).unwrap_or_default();
        line.split('|').nth(7).map(str::to_owned)
    };
    assert_eq!(successor("01012910").as_deref(), Some("01012920"));
    for divided in ["01012110", "01012190", "01013010"] {
        assert_eq!(successor(divided).as_deref(), Some(""), "{divided}\n{list}");
    }
    assert!(list.contains("01013010|80|") && list.contains("2026-10-31"), "{list}");
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
fn the_swiss_structure_has_texts_between_its_numbers_and_days_in_another_file() {
    let structure = "Zolltarif,,,,,,\nTyp,Numm,Einrueck,Text D,Text F,Text I,Text E\n\
        TAB,I,,Tiere,a,b,Animals\nTN2,01,,Lebende Tiere,a,b,Live animals\n\
        TN4,0101,,\"Pferde, Esel\",a,b,\"Horses, asses\"\nVT6,,1,Pferde:,a,b,Horses:\n\
        TN6,0101.21,2,Zuchttiere,a,b,for breeding\nTN8,0101.2110,3,im Kontingent,a,b,within the quota\n\
        TN8,0101.2190,3,andere,a,b,other\nTN8,0101.3000,1,Esel,a,b,Asses\n";
    let days = "TN8 Nr;TN8 Vdat;TN8 Bdat\n0101.2110;44562;\n0101.2190;01.01.2022;\n0101.3000;2012-01-01;2027-12-31\n";
    let files = [("days.csv", days), ("structure.csv", structure)];
    let list = World::new().import(Taxonomy::Tares, None, false, &files).expect("a list");
    assert_eq!(
        list,
        "01|80|0||0||||Lebende Tiere|Live animals
0101|80|1|01-80|0||||Pferde, Esel|Horses, asses
010121|10|2|0101-80|0||||Pferde:|Horses:
010121|80|3|010121-10|0||||Pferde: Zuchttiere|Horses: for breeding
01012110|80|4|010121-80|1|2022-01-01|||im Kontingent|within the quota
01012190|80|4|010121-80|1|2022-01-01|||andere|other
010130|80|2|0101-80|1|2012-01-01|2027-12-31||Esel|Asses"
    );
    for (bad, column) in [
        ("TN9,0101.4000,1,x,a,b,x", "row 11, column Typ"),
        ("TN8,0101.40x0,1,x,a,b,x", "row 11, column Numm"),
        ("VT8,,tief,x,a,b,x", "row 11, column Einrueck"),
        ("TN8,0101.4000,1,,a,b,", "row 11, column Text D"),
    ] {
        let mut list = Lines::new(Taxonomy::Tares, None);
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s.csv");
        fs::write(&path, format!("{structure}{bad}\n")).expect("a file");
        let file = open(&path, &mut list).expect("a file with columns");
        read_file(&file, &mut list);
        let told: Vec<String> = list.faults.iter().map(ToString::to_string).collect();
        assert!(matches!(told.as_slice(), [only] if only.contains(column)), "{bad}: {told:?}");
    }
    let unknown = "TN8 Nr,TN8 Vdat,TN8 Bdat\n0102.1000,2022-01-01,\n";
    let files = [("structure.csv", structure), ("days.csv", unknown)];
    assert!(World::new().import(Taxonomy::Tares, None, false, &files).is_err(), "days of a number without a text");
}

#[test]
fn the_british_list_names_the_parents_of_its_lines_or_counts_indents() {
    let parents = "id,commodity__sid,commodity__code,commodity__suffix,commodity__description,\
        commodity__validity_start,commodity__validity_end,parent__sid,parent__code,parent__suffix\n\
        1,1,0100000000,80,Live animals,1971-12-31,#NA,#NA,#NA,#NA\n\
        2,2,0101000000,80,\"Horses, asses\",1972-01-01,#NA,1,0100000000,80\n\
        3,3,0101210000,10,Horses,2012-01-01,#NA,2,0101000000,80\n\
        4,4,0101210000,80,For breeding,2012-01-01,#NA,3,0101210000,10\n\
        5,5,0101290000,80,Other,2012-01-01,#NA,3,0101210000,10\n\
        6,6,0101300000,80,Asses,2012-01-01,2026-12-31,2,0101000000,80\n";
    let indents = "SID,Commodity code,Product line suffix,Start date,End date,Indentation,End line,Description\n\
        1,0100000000,80,1971-12-31,,0,0,Live animals\n2,0101000000,80,1972-01-01,,0,0,\"Horses, asses\"\n\
        3,0101210000,10,2012-01-01,,1,0,Horses\n4,0101210000,80,2012-01-01,,2,1,For breeding\n\
        5,0101290000,80,2012-01-01,,2,1,Other\n6,0101300000,80,2012-01-01,2026-12-31,1,1,Asses\n";
    for (form, text) in [("parents", parents), ("indents", indents)] {
        let list = World::new().import(Taxonomy::Ukgt, None, false, &[("uk.csv", text)]).expect("a list");
        assert_eq!(
            list,
            "01|80|0||0|1971-12-31||||Live animals
0101|80|1|01-80|0|1972-01-01||||Horses, asses
010121|10|2|0101-80|0|2012-01-01||||Horses
010121|80|3|010121-10|1|2012-01-01||||Horses: For breeding
010129|80|3|010121-10|1|2012-01-01||||Horses: Other
010130|80|2|0101-80|1|2012-01-01|2026-12-31|||Asses",
            "{form}"
        );
        for (right, wrong, told) in [
            ("0101300000,80", "01013x0000,80", "row 7, column"),
            ("2026-12-31", "31/13/2026", "row 7, column"),
            ("0101300000,80", "0101300000,8", "suffix"),
        ] {
            let mut list = Lines::new(Taxonomy::Ukgt, None);
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("uk.csv");
            fs::write(&path, text.replace(right, wrong)).expect("a file");
            read_file(&open(&path, &mut list).expect("a file with columns"), &mut list);
            let faults: Vec<String> = list.faults.iter().map(ToString::to_string).collect();
            assert!(faults.len() == 1 && faults[0].contains(told), "{form} {wrong}: {faults:?}");
        }
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
