//! Known VAT cases, looked up in the laws and in the Commission's database of rates, not derived from the rules here.

use std::path::Path;

use chrono::NaiveDate;

use vat_classification::domain::{ProductClass, Taxonomy};
use vat_classification::reference::Reference;

/// Country, class, day, per cent (`-` where the class does not decide it), the goods and where the rate is from.
const CASES: &str = "
DE 490199-00-000 2026-11-01 7    novel; UStG Anlage 2 Nr. 49 a
DE 490290-00-000 2026-11-01 7    magazine; UStG Anlage 2 Nr. 49 b
DE 040120-00-000 2026-11-01 7    milk; UStG Anlage 2 Nr. 4
DE 220110-00-000 2026-11-01 19   mineral water; UStG Anlage 2 Nr. 34 excludes it
DE 220299-00-000 2026-11-01 -    other drinks; UStG Anlage 2 Nr. 35
DE 220299-01-000 2026-11-01 7    milk drink; UStG Anlage 2 Nr. 35
DE 220299-26-000 2026-11-01 19   oat drink; not in UStG Anlage 2
DE 200912-00-000 2026-11-01 19   orange juice; UStG Anlage 2 Nr. 32 excludes it
DE 961900-13-000 2026-11-01 7    tampons, period pants; UStG Anlage 2 Nr. 55
DE 961900-02-000 2026-11-01 19   nappies; not in UStG Anlage 2
DE 961900-00-000 2026-11-01 -    heading 9619; UStG Anlage 2 Nr. 55 names some of it
DE 300490-00-000 2026-11-01 19   medicine; not in UStG Anlage 2
DE 871310-00-000 2026-11-01 7    wheelchair; UStG Anlage 2 Nr. 51
DE 902140-00-000 2026-11-01 7    hearing aid; UStG Anlage 2 Nr. 52 d
DE 060311-00-000 2026-11-01 7    fresh roses; UStG Anlage 2 Nr. 8
DE 060390-00-000 2026-11-01 19   dried flowers; UStG Anlage 2 Nr. 8 is for fresh ones
DE 440111-00-000 2026-11-01 7    firewood; UStG Anlage 2 Nr. 48 a
DE 440131-00-000 2026-11-01 7    wood pellets; UStG Anlage 2 Nr. 48 b
DE 970121-00-000 2026-11-01 7    painting over 100 years old; UStG § 12 Abs. 2 Nr. 12 since 2025
DE 970121-00-000 2024-06-01 19   painting over 100 years old; UStG before 2025
DE 871160-00-000 2026-11-01 19   e-bike; not in UStG Anlage 2
DE 190110-00-000 2026-11-01 7    baby food; UStG Anlage 2 Nr. 31
DE 090121-00-000 2026-11-01 7    roasted coffee; UStG Anlage 2 Nr. 12
DE 030632-00-000 2026-11-01 19   lobster; UStG Anlage 2 Nr. 3 excludes it
DE 160431-00-000 2026-11-01 19   caviar; UStG Anlage 2 Nr. 28 excludes it
DE 230910-00-000 2026-11-01 7    dog food; UStG Anlage 2 Nr. 37
DE 611120-00-000 2026-11-01 19   babies' garments; not in UStG Anlage 2
DE 070190-00-000 2020-10-01 5    potatoes in the second half of 2020; UStG § 28 Abs. 2
DE 847130-00-000 2020-10-01 16   laptop in the second half of 2020; UStG § 28 Abs. 1
DE 852349-16-000 2026-11-01 7    audiobook on CD; UStG Anlage 2 Nr. 50
DE 854143-25-000 2026-11-01 0    balcony solar module; UStG § 12 Abs. 3 since 2023
DE 854143-02-000 2026-11-01 19   solar module for a plant; UStG § 12 Abs. 1
SK 080810-00-000 2026-11-01 5    apples; Zákon 222/2004 príloha 7
GR 090121-00-000 2026-11-01 13   roasted coffee; N. 5144/2024 Annex III A
AT 070200-00-000 2026-11-01 4.9  tomatoes; UStG 1994 Anlage 3
HU 080810-00-000 2026-11-01 27   apples; Áfa tv. 82. §
LV 080810-00-000 2026-11-01 12   apples; PVN likums 42. p.
GB 490199-00-000 2026-11-01 0    novel; VAT Act 1994 Sch. 8 Group 3
GB 490210-00-000 2026-11-01 0    newspaper; VAT Act 1994 Sch. 8 Group 3
GB 611120-00-000 2026-11-01 0    babies' garments; VAT Act 1994 Sch. 8 Group 16
GB 610910-03-000 2026-11-01 0    child's T-shirt; VAT Act 1994 Sch. 8 Group 16
GB 610910-02-000 2026-11-01 20   adult's T-shirt; VAT Act 1994 s. 2
GB 610910-00-000 2026-11-01 -    T-shirts; VAT Act 1994 Sch. 8 Group 16
GB 621210-00-000 2026-11-01 20   brassieres; VAT Act 1994 s. 2
GB 220110-00-000 2026-11-01 20   mineral water; VAT Act 1994 Sch. 8 Group 1 excepted item 4
GB 040120-00-000 2026-11-01 0    milk; VAT Act 1994 Sch. 8 Group 1
GB 220299-26-000 2026-11-01 0    soya milk; Alpro Ltd [2006] UKVAT V19911
GB 961900-13-000 2026-11-01 0    tampons; VAT Act 1994 Sch. 8 Group 19
GB 961900-13-000 2019-06-01 5    tampons before 2021; VAT Act 1994 Sch. 7A Group 4
GB 610821-13-000 2026-11-01 0    period pants; VAT Act 1994 Sch. 8 Group 19 since 2024
GB 610821-13-000 2023-06-01 20   period pants before 2024; VAT Act 1994 s. 2
GB 170490-00-000 2026-11-01 20   sweets; VAT Act 1994 Sch. 8 Group 1 excepted item 2
GB 190531-09-000 2026-11-01 20   chocolate biscuits; VAT Act 1994 Sch. 8 Group 1 excepted item 2
GB 190531-02-000 2026-11-01 0    plain biscuits; VAT Act 1994 Sch. 8 Group 1
GB 210500-00-000 2026-11-01 20   ice cream; VAT Act 1994 Sch. 8 Group 1 excepted item 1
GB 200520-09-000 2026-11-01 20   crisps; VAT Act 1994 Sch. 8 Group 1 excepted item 5
GB 650610-07-000 2026-11-01 0    motorcycle helmet; VAT Act 1994 Sch. 8 Group 16
GB 300490-00-000 2026-11-01 20   medicine over the counter; VAT Act 1994 s. 2
GB 401410-00-000 2026-11-01 5    condoms; VAT Act 1994 Sch. 7A Group 8
GB 440111-00-000 2026-11-01 5    firewood; VAT Act 1994 Sch. 7A Group 1
GB 230910-00-000 2026-11-01 20   dog food; VAT Act 1994 Sch. 8 Group 1 excepted item 6
GB 060311-00-000 2026-11-01 20   roses; VAT Act 1994 s. 2
GB 871160-00-000 2026-11-01 20   e-bike; VAT Act 1994 s. 2
GB 847130-00-000 2009-06-01 15   laptop in 2009; SI 2008/3020
IE 610910-03-000 2026-11-01 0    child's T-shirt; VATCA 2010 Sch. 2
IE 610910-02-000 2026-11-01 23   adult's T-shirt; VATCA 2010 s. 46
IE 490199-00-000 2026-11-01 0    novel; VATCA 2010 Sch. 2
IE 190590-19-000 2026-11-01 0    bread; VATCA 2010 Sch. 2
IE 190590-02-000 2026-11-01 13.5 cake; VATCA 2010 Sch. 3
IE 961900-13-000 2026-11-01 0    tampons; VATCA 2010 Sch. 2
IE 871310-00-000 2026-11-01 0    wheelchair; VATCA 2010 Sch. 2
IE 220110-00-000 2026-11-01 23   mineral water; VATCA 2010 s. 46
IE 440111-00-000 2026-11-01 13.5 firewood; VATCA 2010 Sch. 3
IE 300490-22-000 2026-11-01 0    tablets; VATCA 2010 Sch. 2
LU 610910-03-000 2026-11-01 3    child's T-shirt; Loi TVA annexe B
LU 847130-00-000 2023-06-01 16   laptop in 2023; Loi TVA art. 39
FR 490199-00-000 2026-11-01 5.5  novel; CGI art. 278-0 bis A 3°
FR 490210-00-000 2026-11-01 2.1  newspaper; CGI art. 298 septies
FR 970121-00-000 2026-11-01 5.5  painting; CGI art. 278-0 bis I since 2025
FR 961900-13-000 2026-11-01 5.5  tampons; CGI art. 278-0 bis A 1° bis
FR 220299-00-000 2026-11-01 5.5  oat drink; CGI art. 278-0 bis A 1°
FR 160431-00-000 2026-11-01 20   caviar; CGI art. 278-0 bis A 1° d
AT 040120-00-000 2026-11-01 4.9  milk; UStG 1994 Anlage 3 since July 2026
AT 040120-00-000 2026-06-30 10   milk before July 2026; UStG 1994 Anlage 1
AT 961900-13-000 2026-11-01 0    tampons; UStG 1994 § 10 since 2026
AT 961900-13-000 2025-06-01 10   tampons before 2026; UStG 1994 Anlage 1
AT 490199-00-000 2026-11-01 10   novel; UStG 1994 Anlage 1
AT 060311-00-000 2026-11-01 13   roses; UStG 1994 Anlage 2
AT 440111-00-000 2026-11-01 13   firewood; UStG 1994 Anlage 2
AT 090121-00-000 2026-11-01 20   roasted coffee; not in UStG 1994 Anlage 1
ES 190590-19-000 2026-11-01 4    common bread; Ley 37/1992 art. 91.Dos
ES 961900-13-000 2026-11-01 4    tampons; Ley 37/1992 art. 91.Dos since 2023
ES 220210-00-000 2026-11-01 21   lemonade; Ley 37/1992 art. 91.Uno excludes it since 2021
ES 150920-00-000 2026-11-01 4    olive oil; Ley 37/1992 art. 91.Dos since 2025
IT 190219-00-000 2026-11-01 4    pasta; DPR 633/1972 Tabella A parte II
IT 440131-00-000 2026-11-01 22   wood pellets; DPR 633/1972 Tabella A parte III n. 98 excludes them
IT 440111-00-000 2026-11-01 10   firewood; DPR 633/1972 Tabella A parte III n. 98
IT 970121-00-000 2026-11-01 5    painting; DL 95/2025 art. 9
NL 220210-00-000 2026-11-01 9    lemonade; Wet OB 1968 Tabel I a.1
NL 060311-00-000 2026-11-01 9    roses; Wet OB 1968 Tabel I a.48
NL 490199-00-000 2018-06-01 6    novel before 2019; Wet OB 1968 Tabel I a.30
CZ 490199-00-000 2026-11-01 0    novel; Zákon 235/2004 § 71i
CZ 220299-26-000 2026-11-01 12   oat drink; Zákon 235/2004 příloha 3
CZ 220110-00-000 2026-11-01 21   mineral water; Zákon 235/2004 příloha 3 excludes drinks
PL 961900-00-000 2026-11-01 5    heading 9619; Ustawa o VAT zał. 10
PL 090121-00-000 2026-11-01 23   roasted coffee; not in Ustawa o VAT zał. 3 and 10
PL 490199-00-000 2026-11-01 5    novel; Ustawa o VAT zał. 10
SE 190590-00-000 2026-11-01 6    bread; ML 9 kap. 3 § from April 2026
SE 190590-00-000 2026-03-31 12   bread before April 2026; ML 9 kap. 3 §
SE 490199-00-000 2026-11-01 6    novel; ML 9 kap. 9 §
FI 300490-00-000 2026-11-01 13.5 medicine; AVL 85 §
FI 490199-00-000 2026-11-01 13.5 novel; AVL 85 §
DK 490210-00-000 2026-11-01 0    newspaper; Momsloven § 34
DK 190590-00-000 2026-11-01 25   bread; Momsloven § 33
HU 040120-00-000 2026-11-01 5    milk; Áfa tv. 3. melléklet
HR 440131-00-000 2026-11-01 5    wood pellets; ZPDV čl. 38 until March 2027
HR 440131-00-000 2027-04-01 25   wood pellets from April 2027; ZPDV čl. 38
EE 490199-00-000 2026-11-01 9    novel; KMS § 15
EE 847130-00-000 2026-11-01 24   laptop; KMS § 15 since July 2025
EE 847130-00-000 2025-06-30 22   laptop before July 2025; KMS § 15
BE 151710-00-000 2026-11-01 12   margarine; AR n° 20 tableau B
BE 220210-00-000 2026-11-01 6    lemonade; AR n° 20 tableau A
RO 490199-00-000 2026-11-01 11   novel; Codul fiscal art. 291 since August 2025
RO 847130-00-000 2025-07-31 -    laptop before August 2025; the rules are known since then
SK 490199-00-000 2026-11-01 5    novel; Zákon 222/2004 príloha 7
SK 170490-00-000 2026-11-01 23   sweets; Zákon 222/2004 § 27 since 2026
LT 490199-00-000 2026-11-01 5    novel; PVMĮ 19 str. since 2026
LT 490199-00-000 2025-06-01 9    novel before 2026; PVMĮ 19 str.
LV 190590-19-000 2026-11-01 12   fresh bread; PVN likums 42. p. from July 2026
CY 961900-00-000 2026-11-01 0    heading 9619 until the end of 2026; decree under N.95(I)/2000
PT 220421-00-000 2026-11-01 13   wine; CIVA lista II
GR 490199-00-000 2026-11-01 6    novel; N. 5144/2024 Annex III
MT 300490-00-000 2026-11-01 0    medicine; Cap. 406 Fifth Schedule
SI 490199-00-000 2026-11-01 5    novel; ZDDV-1 priloga IV
BG 490199-00-000 2026-11-01 9    novel; ZDDS art. 66a
CH 490199-00-000 2026-11-01 2.6  novel; MWSTG Art. 25 Abs. 2
CH 300490-00-000 2026-11-01 2.6  medicine; MWSTG Art. 25 Abs. 2
CH 220110-00-000 2026-11-01 2.6  mineral water; MWSTG Art. 25 Abs. 2
CH 220300-00-000 2026-11-01 8.1  beer; MWSTG Art. 25 Abs. 1
CH 961900-13-000 2026-11-01 2.6  tampons; MWSTG Art. 25 Abs. 2 since 2025
CH 961900-13-000 2024-11-01 8.1  tampons before 2025; MWSTG Art. 25 Abs. 1
CH 847130-00-000 2023-06-01 7.7  laptop in 2023; MWSTG Art. 25 Abs. 1
LI 040120-00-000 2026-11-01 2.6  milk; MWSTG Art. 25 Abs. 2
";

/// Cases that the table must have, so that none gets lost.
const MIN_CASES: usize = 60;

fn reference() -> Reference {
    match Reference::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models")) {
        Ok(reference) => reference,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn known_cases_have_the_rate_of_the_law() {
    let reference = reference();
    let mut wrong = Vec::new();
    let cases: Vec<&str> = CASES.lines().filter(|line| !line.is_empty()).collect();
    assert!(cases.len() >= MIN_CASES);
    for case in cases {
        let mut cells = case.split_whitespace();
        let mut cell = || cells.next().expect("a cell");
        let (country, class, day, wanted) = (cell(), cell(), cell(), cell());
        let class: ProductClass = class.parse().expect("a class");
        let day: NaiveDate = day.parse().expect("a day");
        let taxonomy = Taxonomy::ALL.into_iter().find(|taxonomy| taxonomy.countries().contains(&country));
        let taxonomy = taxonomy.expect("a supported country");
        assert!(reference.nomenclature(taxonomy).contains(class.code), "{case}");
        assert!(reference.vat.defines_segment(taxonomy, class.code, class.segment), "{case}");
        let answer = reference.vat.sufficiency(reference.nomenclature(taxonomy), class, day);
        let found = answer.countries.iter().find(|found| found.country == country).expect("an answer");
        let rate = found.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        if rate != wanted {
            wrong.push(format!("{case}: found {rate}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn both_ways_to_ask_for_sufficiency_agree_for_every_class() {
    let reference = reference();
    let day = "2026-11-01".parse().expect("a day");
    for taxonomy in Taxonomy::ALL {
        let nomenclature = reference.nomenclature(taxonomy);
        for code in nomenclature.codes() {
            let class = ProductClass::plain(code);
            let full = reference.vat.sufficiency(nomenclature, class, day).sufficient;
            assert_eq!(reference.vat.is_sufficient(nomenclature, class, day), full, "{taxonomy} {class}");
        }
    }
}

#[test]
fn every_country_says_how_complete_its_rules_are() {
    let reference = reference();
    let told: Vec<(&str, &str)> = reference.vat.completeness().collect();
    assert_eq!(told.len(), 30);
    assert!(told.iter().all(|(_, text)| text.len() > 20), "{told:?}");
}
