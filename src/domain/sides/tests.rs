use serde_json::json;

use super::*;
use crate::domain::Details;

/// Segments written `03-000`, or with the sides for which they stand: `44-000=25+52`.
fn segments(text: &str) -> Vec<(Segment, Vec<u8>)> {
    let read = |one: &str| {
        let (segment, parts) = one.split_once('=').unwrap_or((one, ""));
        let segment = Segment::parse(segment)?;
        let parts: Vec<u8> = parts.split('+').filter_map(|part| part.parse().ok()).collect();
        Some((segment, if parts.is_empty() { vec![segment.side] } else { parts }))
    };
    text.split(' ').filter_map(read).collect()
}

fn settled(code: &str, defined: &str, details: serde_json::Value) -> String {
    let details: Details = serde_json::from_value(details).expect("details");
    let defined = segments(defined);
    let defined: Vec<(Segment, &[u8])> = defined.iter().map(|(segment, parts)| (*segment, parts.as_slice())).collect();
    settle(ClassCode::new(code).expect("digits"), &defined, &Facts::of(&details)).to_string()
}

/// A product with a German name, and tags after bars.
fn named(texts: &str) -> serde_json::Value {
    let mut texts = texts.split('|');
    let name = texts.next().unwrap_or_default();
    json!({"languageAttributes": {"de": {"productName": name, "productTags": texts.collect::<Vec<_>>()}}})
}

const CLOTHING: &str = "02-000 03-000 35-000";
const HYGIENE: &str = "02-000 03-000 04-000 13-000";
const DRINKS: &str = "01-000 02-000 26-000 27-000 28-000 36-000=27+28";
const TABLETS: &str = "02-000 21-000 22-000 23-000 34-000=22+23 47-000 48-000=21+22";
const PRESS: &str = "02-000 29-000 30-000 31-000 37-000=29+31 38-000=30+31 41-000 51-000";
const SOLAR: &str = "02-000 25-000 44-000=25+52";

#[test]
fn words_settle_a_side_only_where_they_leave_no_doubt() {
    for (code, defined, texts, wanted) in [
        ("961900", HYGIENE, "Tampons Super, 32 Stück", "13"),
        ("961900", HYGIENE, "Always sanitary towels with wings", "13"),
        ("961900", HYGIENE, "Babywindeln Gr. 4", "03"),
        ("961900", HYGIENE, "Inkontinenzeinlagen für Männer", "04"),
        ("961900", HYGIENE, "Windeln Gr. 4", "00"),
        ("961900", HYGIENE, "Slipeinlagen bei Inkontinenz", "00"),
        ("961900", "02-000 13-000", "Babywindeln Gr. 4", "02"),
        ("961900", "", "Tampons", "00"),
        ("392490", "02-000 03-000 13-000", "Menstruationstasse Gr. M", "13"),
        ("392490", "02-000 03-000 13-000", "Schnuller 2er-Pack", "03"),
        ("392490", "02-000 03-000 13-000", "Eimer 10 l", "02"),
        ("610821", "02-000 03-000 13-000 35-000", "Period pants, black", "13"),
        ("610821", "02-000 03-000 13-000 35-000", "Damen Slip schwarz", "02"),
        ("610821", "02-000 03-000 13-000 35-000", "Damen Perioden-Slip schwarz", "13"),
        ("610821", "02-000 03-000 13-000 35-000", "Slip schwarz", "00"),
        ("900410", "02-000 04-000", "Sonnenbrille polarisiert", "02"),
        ("900410", "02-000 04-000", "Sonnenbrille mit Sehstärke", "04"),
        ("610910", CLOTHING, "Herren T-Shirt", "02"),
        ("610910", CLOTHING, "Men\u{2019}s crew neck tee", "02"),
        ("610910", CLOTHING, "Damenshirt", "02"),
        ("610910", CLOTHING, "Damen und Mädchen Shirt", "00"),
        ("610910", CLOTHING, "Damen Shirt|Kinder", "00"),
        ("610910", CLOTHING, "T-Shirt Kinder", "00"),
        ("610910", CLOTHING, "T-shirt baby blue", "00"),
        ("610910", CLOTHING, "Body newborn", "03"),
        ("640391", "02-000 03-000 07-000 35-000", "Damen Stiefel", "00"),
        ("640391", "02-000 03-000 07-000 35-000", "Sicherheitsschuhe S3", "07"),
        ("640391", "02-000 03-000 07-000 35-000", "Damen Pumps", "02"),
        ("650610", "02-000 03-000 07-000 35-000", "Motorradhelm matt", "07"),
        ("650610", "02-000 07-000", "Reithelm", "02"),
        ("940180", "02-000 03-000", "Kinderautositz i-Size", "03"),
        ("940180", "02-000 03-000", "Gartenstuhl Metall", "02"),
        ("940180", "02-000 03-000", "Kindersitz", "00"),
        ("220299", DRINKS, "Bio Haferdrink ungesüßt 1 l", "26"),
        ("220299", DRINKS, "Kakaodrink 0,5 l", "01"),
        ("220299", DRINKS, "Limonade Hafer", "02"),
        ("220299", DRINKS, "Erfrischungsgetränk", "00"),
        ("220299", "01-000 02-000 26-000", "Limonade", "02"),
        ("852349", "02-000 16-000", "Hörbuch auf 6 CDs", "16"),
        ("852349", "02-000 16-000", "Hörspiel", "02"),
        ("852349", "02-000 16-000", "Die drei Freunde, Folge 7", "00"),
        ("854143", SOLAR, "Balkonkraftwerk 800 W", "25"),
        ("854143", SOLAR, "Solarmodul 400 W", "00"),
        ("854143", SOLAR, "Balkonsolar|mit Montage", "00"),
        ("850760", "02-000 25-000", "Solarspeicher 5 kWh", "25"),
        ("850760", "02-000 25-000", "Powerbank 20000 mAh", "02"),
        ("090121", "02-000 03-000", "Kaffee für Damen", "00"),
        // Medicines: how they are taken, by whom, and whether on prescription.
        ("300490", TABLETS, "Ibuprofen 400 Filmtabletten rezeptfrei", "22"),
        ("300490", TABLETS, "Amoxicillin Tabletten verschreibungspflichtig", "34"),
        ("300490", TABLETS, "Cortison Salbe verschreibungspflichtig", "23"),
        ("300490", TABLETS, "Ibuprofen 400 Filmtabletten", "00"),
        ("300490", TABLETS, "Spot-on für Hunde", "21"),
        ("300490", TABLETS, "Nicotine patches 14 mg", "47"),
        // The press.
        ("490210", PRESS, "Tageszeitung im Abo", "37"),
        ("490290", PRESS, "Fachzeitschrift für Steuerrecht, Jahresabo", "38"),
        ("490290", PRESS, "Magazin", "00"),
        // Foods.
        ("190590", "02-000 09-000 19-000 32-000 54-000", "Roggenbrot 750 g", "19"),
        ("190590", "02-000 09-000 19-000 32-000 54-000", "Buttercroissants", "00"),
        ("190590", "02-000 09-000 19-000 32-000", "Tortilla Chips Chili", "09"),
        ("190590", "02-000 19-000 32-000", "Reiswaffeln natur", "00"),
        ("190540", "02-000 11-000", "Babyzwieback", "11"),
        ("190540", "02-000 11-000", "Toastbrot getoastet", "02"),
        ("200520", "02-000 09-000", "Kartoffelchips Paprika", "09"),
        ("200520", "02-000 09-000", "Kartoffelpüree", "02"),
        ("200811", "02-000 09-000", "Salted peanuts", "09"),
        ("200811", "02-000 09-000", "Peanut butter", "02"),
        ("190531", "02-000 09-000", "Chocolate biscuits", "09"),
        ("190531", "02-000 09-000", "Butterkekse", "02"),
        ("190531", "02-000 09-000", "Chocolate chip cookies", "02"),
        ("961900", HYGIENE, "Nappies size 4", "03"),
        ("961900", HYGIENE, "Adult nappies, large", "04"),
        ("190410", "02-000 09-000", "Popcorn süß", "09"),
        ("190410", "02-000 09-000", "Cornflakes", "02"),
        ("210690", "01-000 02-000 09-000 10-000 11-000", "Multivitamin Brausepulver", "10"),
        ("210690", "01-000 02-000 09-000 10-000 11-000", "Ketchup", "00"),
        ("180690", "01-000 02-000 49-000 50-000", "Nuss-Nougat-Creme 400 g", "49"),
        ("180690", "02-000 49-000", "Pralinen", "02"),
        ("180631", "02-000 46-000", "Quarkriegel", "46"),
        ("180631", "02-000 46-000", "Schokoladentafel|Schokolade", "02"),
        ("170490", "01-000 02-000", "Zuckerstreusel bunt", "01"),
        ("170490", "01-000 02-000", "Fruchtgummis", "02"),
        ("160100", "01-000 02-000", "Frische Bratwurst", "01"),
        ("160100", "01-000 02-000", "Salami", "02"),
        ("030619", "02-000 08-000", "Flusskrebse gefroren", "08"),
        ("030619", "02-000 08-000", "Garnelen gefroren", "02"),
        ("250100", "01-000 02-000", "Speisesalz jodiert", "01"),
        ("250100", "01-000 02-000", "Streusalz 25 kg", "02"),
        ("250100", "01-000 02-000", "Meersalz", "00"),
        ("220190", "01-000 02-000", "Leitungswasser", "01"),
        ("121190", "01-000 02-000", "Pfefferminztee lose", "01"),
        ("350300", "01-000 02-000", "Blattgelatine", "01"),
        ("350300", "01-000 02-000", "Knochenleim", "02"),
        ("490590", "01-000 02-000", "Wanderkarte Harz", "01"),
        ("490590", "01-000 02-000", "Globus 30 cm", "02"),
        ("110290", "02-000 43-000", "Maismehl glutenfrei", "43"),
        ("110290", "02-000 43-000", "Dinkelmehl", "02"),
        // Feed, farming, fuel.
        ("230990", "02-000 05-000", "Legemehl 25 kg|Hühnerfutter", "05"),
        ("230990", "02-000 05-000", "Meisenknödel 30 Stück", "02"),
        ("230910", "02-000 45-000", "Working dog food 15 kg", "45"),
        ("230910", "02-000 45-000", "Cat food salmon", "02"),
        ("230910", "02-000 45-000", "Hundefutter", "02"),
        ("660200", "02-000 04-000 20-000 60-000=04+20", "Blindenstock faltbar", "60"),
        ("660200", "02-000 04-000 20-000 60-000=04+20", "Gehstock Holz", "04"),
        ("660200", "02-000 04-000 20-000 60-000=04+20", "Reitgerte 110 cm", "02"),
        ("901890", "01-000 02-000 04-000 58-000 59-000=04+58", "AED Laiendefibrillator", "59"),
        ("901890", "01-000 02-000 04-000 58-000 59-000=04+58", "Blutdruckmessgerät", "04"),
        ("901890", "01-000 02-000 04-000 58-000 59-000=04+58", "Kupferspirale", "01"),
        ("120991", "02-000 06-000", "Tomatensamen", "06"),
        ("120930", "02-000 06-000", "Blumensamen", "02"),
        ("380891", "02-000 06-000", "Mottenkugeln", "02"),
        ("380892", "02-000 06-000", "Pflanzenschutzmittel gegen Mehltau", "06"),
        ("060290", "02-000 06-000", "Tomatenpflanze im Topf", "06"),
        ("060290", "02-000 06-000", "Orchidee", "02"),
        ("440121", "02-000 14-000", "Anzündholz", "14"),
        ("440121", "02-000 14-000", "Räucherchips Buche", "02"),
        ("440122", "02-000 14-000", "Hackschnitzel zum Heizen", "14"),
        ("190590", "01-000 02-000 09-000 19-000 32-000", "Pizza Salami tiefgekühlt", "01"),
        ("611510", "02-000 04-000", "Kompressionsstrümpfe Klasse 2", "04"),
        ("300431", "02-000 21-000 22-000 23-000 34-000=22+23", "Insulin Fertigpen verschreibungspflichtig", "23"),
        ("271019", "02-000 14-000", "Heizöl EL", "14"),
        ("271019", "02-000 14-000", "Motoröl 5W-30", "02"),
        ("382499", "02-000 40-000", "Katzenstreu Klump", "40"),
        ("382499", "02-000 40-000", "Kleber", "02"),
        ("010391", "02-000 42-000", "Wildschwein", "42"),
        ("010391", "02-000 42-000", "Ferkel", "02"),
        // Others.
        ("711890", "02-000 39-000", "Krügerrand 1 oz", "39"),
        ("711890", "02-000 39-000", "Silbermünze", "02"),
        ("900490", "02-000 04-000", "Lesebrille +2,0", "04"),
        ("900490", "02-000 04-000", "Skibrille", "02"),
        ("902519", "02-000 04-000", "Bratenthermometer", "02"),
        ("401512", "02-000 04-000", "Examination gloves nitrile", "04"),
        ("240491", "02-000 04-000", "Nicotine gum 2 mg", "04"),
        ("490110", "02-000 17-000", "Werbeflyer A5", "17"),
        ("220421", "02-000 12-000 53-000", "Portwein Tawny", "53"),
        ("220421", "02-000 53-000", "Portwein Tawny", "53"),
        ("220421", "02-000 53-000", "Merlot", "02"),
    ] {
        assert_eq!(settled(code, defined, named(texts)), format!("{wanted}-000"), "{code} {texts}");
    }
}

#[test]
fn numbers_settle_a_side_where_the_condition_is_a_number() {
    let wine = "02-000 12-000 53-000";
    for (code, defined, texts, wanted) in [
        ("610910", CLOTHING, "Girls' T-shirt age 3-4", "03"),
        ("610910", CLOTHING, "T-shirt 6-9 months", "03"),
        ("610910", CLOTHING, "T-Shirt Mädchen 5-6 Jahre", "03"),
        ("610910", CLOTHING, "T-shirt kids 8-10y", "03"),
        ("610910", CLOTHING, "T-shirt boys 11-13 years", "35"),
        ("610910", CLOTHING, "T-shirt boys 10-11 years", "00"),
        ("610910", CLOTHING, "T-shirt boys 14-15 years", "02"),
        ("610910", CLOTHING, "T-Shirt Jungen, 7 Jahre", "03"),
        ("610910", CLOTHING, "T-Shirt ab 3 Jahren", "00"),
        ("610910", CLOTHING, "T-shirt 3-4 years, 13-14 years", "00"),
        ("610910", CLOTHING, "Ladies T-shirt, age 3-4", "00"),
        ("610910", CLOTHING, "T-shirt, warranty 2-3 years", "00"),
        ("610910", CLOTHING, "T-Shirt Gr. 128", "03"),
        ("610910", CLOTHING, "T-Shirt Größe 122/128", "03"),
        ("610910", CLOTHING, "T-Shirt Gr. 98/104", "03"),
        ("610910", CLOTHING, "Kinder T-Shirt Gr. 110", "03"),
        ("610910", CLOTHING, "Baby Shirt Gr. 62/68", "03"),
        ("610910", CLOTHING, "T-Shirt Gr. 110", "00"),
        ("610910", CLOTHING, "T-Shirt Mädchen Gr. 164", "00"),
        ("640391", CLOTHING, "Kinderschuhe Leder Gr. 30", "03"),
        ("640391", CLOTHING, "Sneaker EU 28", "03"),
        ("640391", CLOTHING, "Lauflernschuhe Größe 20-22", "03"),
        ("640391", CLOTHING, "Kinderschuhe Gr. 33-36", "00"),
        ("640391", CLOTHING, "Kinderschuhe Gr. 38", "00"),
        ("640391", CLOTHING, "Kinderschuhe Gr. 34-35", "03"),
        ("640391", CLOTHING, "Mädchen Ballerinas Größe 35", "03"),
        ("640391", CLOTHING, "Mädchen Ballerinas Größe 36", "00"),
        ("640391", CLOTHING, "Girls school shoes UK 3", "03"),
        ("640391", CLOTHING, "Kids trainers size 2 UK", "03"),
        ("640391", CLOTHING, "Boys boots UK 4", "00"),
        ("640391", CLOTHING, "Boys boots UK 2-4", "00"),
        ("640391", CLOTHING, "School shoes UK 3", "00"),
        ("640391", CLOTHING, "Sneaker Gr. 35", "00"),
        ("640391", CLOTHING, "Damen Sneaker Gr. 35", "02"),
        ("640391", CLOTHING, "Damen und Mädchen Sneaker Gr. 35", "00"),
        ("640391", CLOTHING, "Sneaker babyblau Gr. 35", "00"),
        ("430400", CLOTHING, "Kinderjacke Kunstpelz Gr. 116", "03"),
        ("640391", CLOTHING, "Running shoes size 28 cm", "00"),
        ("610910", CLOTHING, "T-Shirt Gr. 30", "00"),
        ("610910", CLOTHING, "T-Shirt Gr. 152", "35"),
        ("610910", CLOTHING, "T-Shirt Gr. 140/146", "03"),
        ("610910", CLOTHING, "T-Shirt Gr. 146", "00"),
        ("610910", CLOTHING, "T-Shirt Gr. 140/152", "00"),
        ("610910", CLOTHING, "T-Shirt Gr. 176", "02"),
        ("610910", CLOTHING, "Anzughose Gr. 98", "00"),
        ("610910", CLOTHING, "Sakko Gr. 52", "00"),
        ("610910", CLOTHING, "Herrenhose Gr. 102", "02"),
        ("610910", CLOTHING, "Vorhang 128 cm", "00"),
        ("220421", wine, "Riesling trocken 12,5 % vol", "12"),
        ("220421", wine, "Zinfandel 14.5% ABV", "02"),
        ("220421", wine, "Portwein 20 % vol", "53"),
        ("220421", wine, "Rotwein 0,75 l", "00"),
        ("220421", wine, "Amarone 15,5 % vol", "00"),
        ("220300", "02-000 24-000", "Folköl 3,5 % vol", "24"),
        ("220300", "02-000 24-000", "Pils 4,9% vol. 6 x 33 cl", "02"),
        ("220300", "02-000 24-000", "Pils 6 x 33 cl", "00"),
        ("220299", DRINKS, "Apfelschorle ungesüßt, 60 % Saft", "36"),
        ("220299", DRINKS, "Fruchtsaftgetränk gezuckert, Saftgehalt: 30 %", "28"),
        ("220299", DRINKS, "Fruchtsaftgetränk, Saftgehalt: 30 %", "00"),
        ("220299", DRINKS, "Limonade gezuckert", "02"),
        ("220299", DRINKS, "Aromatisiertes Wasser ungesüßt", "27"),
        ("200989", "02-000 27-000 33-000", "Apfel Direktsaft", "27"),
        ("200989", "02-000 27-000 33-000", "Johannisbeernektar|Nektar", "33"),
        ("200989", "02-000 27-000 33-000", "Apfelsaft", "00"),
        ("200912", "02-000 27-000 33-000", "Orangennektar 50 % Saft", "33"),
        ("200971", "02-000 27-000 33-000", "Apfelsaft 100 %", "27"),
        ("200971", "02-000 27-000 33-000", "100% apple juice", "27"),
        ("200971", "02-000 27-000 33-000", "Apfelsaft, 50 % mehr Inhalt", "00"),
        ("190420", "02-000 54-000", "Müsli Beeren, davon Zucker: 4,5 g", "02"),
        ("190420", "02-000 54-000", "Muesli, of which sugars 9.9 g", "02"),
        ("190420", "02-000 54-000", "Muesli, of which sugars 21 g", "00"),
        ("190420", "02-000 54-000", "Müsli gezuckert, davon Zucker 21 g", "54"),
        ("190420", "02-000 54-000", "Müsli, Zucker 4 g", "00"),
        ("230910", "02-000 61-000", "Greyhound racing feed 15 kg", "61"),
        ("230910", "02-000 61-000", "Greyhound racing feed 2 kg", "02"),
        ("230910", "02-000 61-000", "Greyhound racing feed", "00"),
        ("310520", "02-000 06-000", "NPK-Dünger 25 kg", "06"),
        ("310520", "02-000 06-000", "Blumendünger 500 g", "02"),
        ("310520", "02-000 06-000", "Dünger 1 kg, ergibt 10 kg", "00"),
        ("310520", "02-000 06-000", "Dünger", "00"),
        ("310590", "02-000 06-000", "Blumendünger flüssig 1 l", "02"),
        ("310590", "02-000 06-000", "Flüssigdünger 20 l", "06"),
        ("310590", "02-000 06-000", "Flüssigdünger 8 l", "00"),
    ] {
        assert_eq!(settled(code, defined, named(texts)), format!("{wanted}-000"), "{code} {texts}");
    }
}

#[test]
fn attributes_and_measures_settle_what_is_missing() {
    let with = |attributes: serde_json::Value| json!({"merchantProductAttributes": attributes});
    for (code, defined, details, wanted) in [
        ("610910", CLOTHING, with(json!({"age": 8})), "03"),
        ("610910", CLOTHING, with(json!({"Age": "12"})), "35"),
        ("610910", CLOTHING, with(json!({"age": 40})), "02"),
        ("610910", CLOTHING, with(json!({"size": 8})), "00"),
        ("220300", "02-000 24-000", with(json!({"alcohol": "4,9"})), "02"),
        ("220300", "02-000 24-000", with(json!({"alcohol": 2.8})), "24"),
        ("220299", DRINKS, with(json!({"juice": 60, "sugar": 0})), "36"),
        ("220299", "27-000 28-000 36-000=27+28 02-000", with(json!({"juice": 60, "sugar": 0})), "36"),
        ("220299", "27-000 28-000 36-000=27+28 02-000", with(json!({"juice": 5, "sugar": 9.5})), "02"),
        ("190420", "02-000 54-000", with(json!({"sugar": 0})), "02"),
        ("190420", "02-000 54-000", with(json!({"sugar": 12})), "54"),
        ("190420", "02-000 54-000", with(json!({"sugar": 4})), "00"),
        ("300490", "02-000 23-000", with(json!({"prescription": true})), "23"),
        ("300490", "02-000 23-000", with(json!({"prescription": false})), "02"),
        ("310520", "02-000 06-000", json!({"customs": {"physicalMeasure": {"unit": "kg", "amount": 20}}}), "06"),
        ("310520", "02-000 06-000", json!({"customs": {"physicalMeasure": {"unit": "g", "amount": 500}}}), "02"),
        ("310520", "02-000 06-000", json!({"customs": {"physicalMeasure": {"unit": "ml", "amount": 750}}}), "02"),
        ("310520", "02-000 06-000", json!({"customs": {"physicalMeasure": {"unit": "hl", "amount": 2}}}), "06"),
        ("310520", "02-000 06-000", json!({"customs": {"physicalMeasure": {"unit": "pcs", "amount": 20}}}), "00"),
        // A number that contradicts the words, or another number, settles nothing.
        (
            "220299",
            "02-000 27-000",
            json!({"merchantProductAttributes": {"sugar": 5},
            "languageAttributes": {"de": {"productName": "Tee ungesüßt"}}}),
            "00",
        ),
        (
            "220300",
            "02-000 24-000",
            json!({"languageAttributes": {"de": {"productName": "Bier 3,5 % vol"},
            "en": {"productName": "Beer", "productDescription": "Contains 4.5% alc."}}}),
            "00",
        ),
        (
            "220300",
            "02-000 24-000",
            json!({"languageAttributes": {"en": {"productName": "Beer",
            "productDescription": "Brewed slowly. 3.0% vol."}}}),
            "24",
        ),
    ] {
        assert_eq!(settled(code, defined, details.clone()), format!("{wanted}-000"), "{code} {details}");
    }
}

/// A row of `cases.tsv`: what the words of a side make of a name.
struct Case {
    side: u8,
    code: ClassCode,
    language: &'static str,
    facts: Facts,
    wanted: bool,
    text: &'static str,
}

fn cases() -> Vec<Case> {
    let rows = include_str!("cases.tsv").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let case = |text: &'static str| {
        let cells: Vec<&'static str> = text.split('\t').collect();
        let [side, code, language, name, wanted] = cells[..] else { panic!("{text} is not of the shape") };
        assert!(matches!(language, "de" | "en") && matches!(wanted, "yes" | "no"), "{text}");
        let mut texts = name.split('|');
        let name = texts.next().unwrap_or_default();
        let details = json!({"languageAttributes": {language: {"productName": name,
            "productTags": texts.collect::<Vec<_>>()}}});
        let details: Details = serde_json::from_value(details).expect("details");
        let code = ClassCode::new(code).expect("digits");
        let side = side.parse().expect("a side");
        Case { side, code, language, facts: Facts::of(&details), wanted: wanted == "yes", text }
    };
    rows.map(case).collect()
}

#[test]
fn names_are_on_their_sides() {
    let is = |case: &Case| answer(case.code, case.side, &case.facts);
    let wrong: Vec<&str> = cases().iter().filter(|case| is(case) != Some(case.wanted)).map(|case| case.text).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_words_has_cases_in_both_languages_for_both_of_its_cells() {
    let cases = cases();
    let mut bare = Vec::new();
    for row in table::TABLE.iter() {
        let under = |case: &&Case| row.under.iter().any(|prefix| case.code.as_str().starts_with(prefix));
        for (words, wanted) in [(&row.yes, true), (&row.no, false)] {
            for language in ["de", "en"] {
                let own = |case: &Case| {
                    case.side == row.side
                        && case.wanted == wanted
                        && case.language == language
                        && case.facts.says(words)
                };
                if !words.is_empty() && !cases.iter().filter(under).any(own) {
                    bare.push(format!("{:02} {} {language} {wanted}", row.side, row.under.join(" ")));
                }
            }
        }
    }
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}

#[test]
fn every_row_of_words_is_of_the_shape_and_says_something() {
    for (index, row) in table::rows().enumerate() {
        let row = row.unwrap_or_else(|| panic!("row {index} is not of the shape"));
        assert!(!(row.yes.is_empty() && row.no.is_empty()), "row {index} has no words");
        assert!(row.under.iter().all(|prefix| prefix.bytes().all(|b| b.is_ascii_digit())), "row {index}");
        for word in row.yes.iter().chain(&row.no) {
            let plain = word.trim_end_matches('*');
            assert!(!plain.is_empty() && plain == plain.to_lowercase().trim(), "row {index}: {word}");
            assert!(plain.chars().all(|c| c.is_alphanumeric() || c == ' '), "row {index}: {word} can never occur");
        }
    }
}
