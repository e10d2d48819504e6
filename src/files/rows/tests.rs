use super::*;
use crate::files::Given;

fn read(header: &str, cells: &str) -> Result<Row, Vec<RowFault>> {
    let names: Vec<String> = header.split(';').map(str::to_owned).collect();
    let given = Given { language: "de".to_owned(), ..Given::default() };
    let columns = Columns::of(&names, &given).expect("columns");
    patch(&columns, &Line { number: 2, cells: cells.split(';').map(str::to_owned).collect(), ..Line::default() })
}

#[test]
fn a_line_says_what_its_cells_say_and_no_more() {
    for (header, cells, expected) in [
        ("productId;de:productName;gtin", "a;;", json!({})),
        ("productId;shopIds", "a;1|2", json!({"shopIds": [1, 2]})),
        (
            "productId;unit;amount",
            "a;kg;1,5",
            json!({"productDetails": {"customs": {"physicalMeasure": {"unit": "kg", "amount": 1.5}}}}),
        ),
        (
            "productId;Variant Grams",
            "a;250",
            json!({"productDetails": {"customs": {"physicalMeasure": {"unit": "g", "amount": 250}}}}),
        ),
        (
            "productId;shipping_weight",
            "a;2 kg",
            json!({"productDetails": {"customs": {"physicalMeasure": {"unit": "kg", "amount": 2}}}}),
        ),
        (
            "id;title;tags",
            "a;'=1;x, y",
            json!({"productDetails": {"languageAttributes": {"de": {"productName": "=1", "productTags": ["x", "y"]}}}}),
        ),
        (
            "productId;gtin;productUids",
            "a;'0123;{\"mpn\":\"7\"}",
            json!({"productDetails": {"productUids": {"gtin": "0123", "mpn": "7"}}}),
        ),
        ("productId;price;TARIC:status", "a;7;ASSIGNED", json!({})),
        (
            "productId;taricCode;platformCode;HS Code",
            "a;9012100;90121;'9403600",
            json!({"productDetails": {"customsCodes": {"taricCode": "09012100", "platformCode": {"code": "090121"},
                "customsTariffCode": "9403600"}}}),
        ),
        (
            "productId;gtin;asin",
            "a;36000291452;''B01",
            json!({"productDetails": {"productUids": {"gtin": "036000291452", "asin": "'B01"}}}),
        ),
    ] {
        assert_eq!(read(header, cells).expect("a row").patch, expected, "{header}");
    }
    assert_eq!(read("productId;shopId", "a;7").expect("a row").shop.number(), Some(7));
}

#[test]
fn an_id_is_the_same_in_whatever_program_it_was_written() {
    for (cell, id) in [("'0123", "0123"), ("''0123", "'0123"), ("'-1", "-1"), ("'n1", "'n1"), ("0123", "0123")] {
        assert_eq!(read("Variant SKU;title", &format!("{cell};x")).expect("a row").product_id, id);
    }
}

#[test]
fn a_line_that_says_nothing_is_passed_over() {
    let file = "Handle,Variant SKU,Title,Image Src\n\
                kaffee,K1,Kaffee,1.jpg\n\
                kaffee,,,2.jpg\n\
                kaffee,,Tee,3.jpg\n\
                kaffee,,\n\
                kaffee,K2,,4.jpg\n";
    let lines = crate::files::open(std::io::Cursor::new(file)).expect("a file");
    let columns = Columns::of(lines.header(), &Given { language: "de".into(), ..Given::default() }).expect("columns");
    let mut rows = Rows::new(lines, columns);
    let mut told = Vec::new();
    while let Some(row) = rows.next_row().expect("readable") {
        told.push(row.map_or_else(|faults| (faults[0].line, "refused".to_owned()), |row| (row.line, row.product_id)));
    }
    let told: Vec<(u64, &str)> = told.iter().map(|(line, what)| (*line, what.as_str())).collect();
    assert_eq!(told, [(2, "K1"), (4, "refused"), (5, "refused"), (6, "K2")]);
}

#[test]
fn a_cell_that_cannot_be_read_is_a_fault_unless_it_is_left() {
    let names: Vec<String> = ["productId", "Preis", "amount"].map(str::to_owned).into();
    let columns = Columns::of(&names, &Given::default()).expect("columns");
    let line = |at: usize| Line {
        number: 2,
        cells: ["a", "#N/A", "1"].map(str::to_owned).into(),
        faults: [(at, "is broken".to_owned())].into(),
    };
    for (at, column) in [(0, "productId"), (2, "amount")] {
        let faults = patch(&columns, &line(at)).expect_err("a fault");
        assert_eq!(faults, [RowFault::new(2, "a", column, "is broken")]);
    }
    assert!(patch(&columns, &line(1)).is_ok());
}

#[test]
fn every_mistake_of_a_line_is_named_with_its_column() {
    let header = "productId;shopId;shopIds;amount;Variant Grams;merchantProductAttributes";
    let faults = read(header, ";x;1|b;much;heavy;[1]").expect_err("faults");
    let columns: Vec<&str> = faults.iter().map(|fault| fault.column.as_str()).collect();
    assert_eq!(columns, ["shopId", "shopIds", "amount", "Variant Grams", "merchantProductAttributes", "productId"]);
    assert!(read("productId;gtin", "a").expect_err("a fault")[0].message.contains("1 cells"));
    let many = ";".repeat(MAX_COLUMNS + 5);
    assert!(read("productId;gtin", &many).expect_err("a fault")[0].message.contains("more than 1000 cells"));
}

#[test]
fn what_the_database_cannot_store_is_a_fault_of_its_cell() {
    let header = "productId;de:productName;de:productTags;productUids";
    let faults = read(header, "a\0;b\0;c|d\0;{\"mpn\":\"\\u0000\"}").expect_err("faults");
    let columns: Vec<&str> = faults.iter().map(|fault| fault.column.as_str()).collect();
    assert_eq!(columns, header.split(';').collect::<Vec<_>>());
    assert!(read("productId;other", "a;\0").is_ok(), "nothing is stored of a column that nobody knows");
}

#[test]
fn tags_are_read_as_they_were_written() {
    for tags in [&["Größe 1,5"][..], &["a, b"], &["a,b", "c"], &["a", "b"], &["a", "", "b"], &[""]] {
        assert_eq!(super::tags(&crate::files::join(tags.iter().copied())), tags);
    }
}

#[test]
fn a_fault_is_short_however_long_its_line_is() {
    let long = "x".repeat(1 << 20);
    let cells = format!("{long};\"{long}\"");
    let faults = read("productId;merchantProductAttributes", &cells).expect_err("a fault");
    assert_eq!(faults[0].product_id.len(), MAX_PRODUCT_ID_CHARACTERS);
    assert_eq!(faults[0].message.len(), MAX_MESSAGE_CHARACTERS);
}

#[test]
fn a_place_of_the_document_is_found_among_the_columns() {
    let names: Vec<String> = ["SKU", "Ursprungsland", "tags"].map(str::to_owned).into();
    let columns = Columns::of(&names, &Given { language: "de".into(), ..Given::default() }).expect("columns");
    for (place, column) in [
        ("productDetails.customs.countryOfOrigin", "Ursprungsland"),
        ("productDetails.languageAttributes.de.productTags[3]", "tags"),
        ("productId", "SKU"),
        ("productDetails.elsewhere", "productDetails.elsewhere"),
    ] {
        assert_eq!(Rows::column_of(&columns, place), column);
    }
}
