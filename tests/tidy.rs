//! The rooms of the library import each other in one direction only, and the tree stays clean.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Which rooms a room may import from, besides itself; ARCHITECTURE.md draws the same.
const MAY_IMPORT: [(&str, &str); 18] = [
    ("domain", ""),
    ("embedded_postgres", ""),
    ("demo", ""),
    ("console", ""),
    ("files", "domain"),
    ("exchange", "files store domain"),
    ("pictures", "domain"),
    ("webhooks", "domain"),
    ("reference", "domain"),
    ("classify", "domain"),
    ("memory", "classify domain"),
    ("store", "domain"),
    ("search", "store domain"),
    ("decision", "memory classify reference domain"),
    ("jobs", "decision memory search store pictures webhooks classify reference domain"),
    ("http", "exchange files decision memory search store pictures webhooks classify reference domain console"),
    (
        "app",
        "http jobs exchange files decision memory search store pictures webhooks classify reference domain demo embedded_postgres",
    ),
    ("main", "app"),
];

/// Only these rooms may name these crates.
const RESERVED: [(&str, &str); 5] = [
    ("axum::", "http"),
    ("utoipa_swagger_ui", "http"),
    ("sqlx::query", "store"),
    ("linfa", "classify"),
    ("object_store::", "pictures"),
];

/// Source files that are not tests, which may use what they test.
fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The files below `src`, by room.
fn rooms() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    rust_files(Path::new("src"), &mut files);
    let mut rooms: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for file in files {
        let inside = file.strip_prefix("src").expect("a file below src");
        let first = inside.iter().next().expect("a name").to_string_lossy();
        let room = first.trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(&file).expect("a source file");
        rooms.entry(room).or_default().push((file, text));
    }
    rooms.remove("lib");
    rooms
}

/// The lines of a file that are code: comments and what stands below `#[cfg(test)]` are left out.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().take_while(|(_, line)| !line.starts_with("#[cfg(test)]"));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn rooms_import_in_one_direction() {
    let allowed: BTreeMap<&str, &str> = MAY_IMPORT.into_iter().collect();
    let mut wrong = Vec::new();
    for (room, files) in rooms() {
        let may = allowed.get(room.as_str()).unwrap_or_else(|| panic!("the room {room} is not in the table"));
        for (file, text) in files {
            for (number, line) in code(&text) {
                for (at, _) in line.match_indices("crate::").chain(line.match_indices("vat_classification::")) {
                    let rest = &line[at..].split_once("::").expect("a path").1;
                    let imported: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    let known = allowed.contains_key(imported.as_str());
                    if known && imported != room && !may.split(' ').any(|one| one == imported) {
                        wrong.push(format!("{}:{}: {room} imports {imported}", file.display(), number + 1));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_that_belong_to_a_room_are_named_in_it_only() {
    let mut wrong = Vec::new();
    for (room, files) in rooms() {
        for (file, text) in files {
            for (number, line) in code(&text) {
                for (name, owner) in RESERVED {
                    if line.contains(name) && room != owner {
                        wrong.push(format!("{}:{}: {name} belongs to {owner}", file.display(), number + 1));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_domain_is_pure() {
    let mut wrong = Vec::new();
    for (file, text) in &rooms()["domain"] {
        for (number, line) in code(text) {
            let impure =
                ["async fn", "std::fs", "std::net", "std::env", "Instant::now", "SystemTime", "Utc::now", "tokio"];
            if let Some(what) = impure.into_iter().find(|what| line.contains(what)) {
                wrong.push(format!("{}:{}: {what}", file.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
