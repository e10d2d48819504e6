//! The rooms of the library import each other in one direction only, and the tree stays clean.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which rooms a room may import from, besides itself; ARCHITECTURE.md draws the same.
const MAY_IMPORT: [(&str, &str); 19] = [
    ("computing", ""),
    ("domain", ""),
    ("embedded_postgres", ""),
    ("demo", ""),
    ("console", ""),
    ("files", "domain"),
    ("exchange", "files store domain"),
    ("pictures", "computing domain"),
    ("webhooks", "domain"),
    ("reference", "domain"),
    ("classify", "domain"),
    ("memory", "classify domain"),
    ("store", "computing domain"),
    ("search", "store domain"),
    ("decision", "memory classify reference domain"),
    ("jobs", "computing decision memory search store pictures webhooks classify reference domain"),
    (
        "http",
        "computing exchange files decision memory search store pictures webhooks classify reference domain console",
    ),
    (
        "app",
        "http jobs exchange files decision memory search store pictures webhooks classify reference domain demo embedded_postgres",
    ),
    ("main", "app"),
];

/// Only files below these folders may name these crates and calls.
const RESERVED: [(&str, &[&str]); 8] = [
    ("axum::", &["http"]),
    ("utoipa_swagger_ui", &["http"]),
    ("sqlx::query", &["store", "search/postgres"]),
    ("linfa", &["classify"]),
    ("object_store::", &["pictures"]),
    // A transaction begins where it is begun to the end.
    ("Transaction::begin", &["store/limits.rs"]),
    ("pool.begin", &[]),
    ("pool().begin", &[]),
];

/// Source files below a folder.
fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The files below a root; without tests, which may use what they test.
fn files_below(root: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    rust_files(Path::new(root), &mut files);
    files.retain(|file| !file.to_string_lossy().ends_with("tests.rs"));
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("a source file");
        (file, text)
    };
    files.into_iter().map(read).collect()
}

/// The files below `src`, by room.
fn rooms() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let mut rooms: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for (file, text) in files_below("src") {
        let inside = file.strip_prefix("src").expect("a file below src");
        let first = inside.iter().next().expect("a name").to_string_lossy();
        let room = first.trim_end_matches(".rs").to_owned();
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
    for (file, text) in rooms().into_values().flatten() {
        for (name, owners) in RESERVED {
            if owners.iter().any(|owner| file.starts_with(Path::new("src").join(owner))) {
                continue;
            }
            for (number, line) in code(&text) {
                if line.contains(name) {
                    wrong.push(format!("{}:{}: {name} belongs to {owners:?}", file.display(), number + 1));
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

/// The module that a file is, such as `store::products::write`.
fn module_of(file: &Path) -> String {
    let inside = file.with_extension("");
    let parts: Vec<_> = inside.iter().skip(1).map(|part| part.to_string_lossy()).filter(|part| part != "mod").collect();
    parts.join("::")
}

/// The paths of a tree such as `a::{b, c::{d, e}}`.
fn paths_of(tree: &str) -> Vec<String> {
    let Some((before, inside)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let inside = inside.strip_suffix('}').unwrap_or(inside);
    let (mut paths, mut depth, mut branch) = (Vec::new(), 0, String::new());
    for letter in inside.chars().chain([',']) {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if letter == ',' && depth == 0 {
            paths.extend(paths_of(&branch).into_iter().map(|path| format!("{before}{path}")));
            branch.clear();
        } else {
            branch.push(letter);
        }
    }
    paths
}

/// What a file imports, as it writes it: in `use`, and by paths from the root or from above.
fn imports(text: &str) -> Vec<String> {
    let text: String = code(text).flat_map(|(_, line)| [line, "\n"]).collect();
    let mut found = Vec::new();
    for statement in text.split(';') {
        let line = statement.trim_start().rsplit("\n\n").next().unwrap_or_default().trim();
        if let Some((start, tree)) = line.split_once("use ")
            && (start.is_empty() || start.starts_with("pub"))
        {
            let whole: String = tree.split_whitespace().take_while(|word| *word != "as").collect();
            found.extend(paths_of(&whole));
        }
    }
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            found.push(text[at..].chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c)).collect());
        }
    }
    found
}

/// The file that a path leads to from a module, if any of these.
fn target(from: &str, path: &str, modules: &BTreeMap<String, String>) -> Option<String> {
    let mut place: Vec<&str> = from.split("::").collect();
    let mut parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
    if parts.first() == Some(&"crate") {
        (place, parts) = (Vec::new(), parts.split_off(1));
    }
    while parts.first() == Some(&"super") {
        place.pop();
        parts.remove(0);
    }
    parts.retain(|part| *part != "self");
    place.extend(parts);
    while !place.is_empty() {
        let module = place.join("::");
        if modules.contains_key(&module) {
            return Some(module);
        }
        place.pop();
    }
    None
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let mut wrong = Vec::new();
    // The rooms import in one direction, so that a circle lies within one; the trainer is one by itself.
    for (room, files) in rooms().into_iter().chain([("training".to_owned(), files_below("training"))]) {
        let modules: BTreeMap<String, String> =
            files.into_iter().map(|(file, text)| (module_of(&file), text)).collect();
        let lies_in = |one: &str, other: &str| one.starts_with(&format!("{other}::"));
        let mut left: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, text) in &modules {
            let targets = imports(text).into_iter().filter_map(|path| target(module, &path, &modules));
            // What lies in a file's own folder is a part of it.
            let beside = targets.filter(|other| other != module && !lies_in(other, module) && !lies_in(module, other));
            left.insert(module.clone(), beside.collect());
        }
        // What imports nothing that is left, or is imported by nothing that is left, is in no circle.
        loop {
            let imported: BTreeSet<String> = left.values().flatten().cloned().collect();
            let before = left.len();
            let names: BTreeSet<String> = left.keys().cloned().collect();
            left.retain(|module, targets| imported.contains(module) && !targets.is_disjoint(&names));
            if left.len() == before {
                break;
            }
        }
        if !left.is_empty() {
            wrong.push(format!("{room}: {left:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The last migration of the time before versions ran side by side.
const LAST_FREE_MIGRATION: u32 = 50;

/// What a migration does that a program of the version before may not survive.
fn breaks(statement: &str) -> bool {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let has = |phrase: &str| format!(" {} ", words.join(" ")).contains(&format!(" {phrase} "));
    let takes_away = ["drop table", "drop column", "drop function", "drop view", "rename", "alter column", "truncate"];
    // A column that has to be given is one that earlier programs do not give.
    let demands = has("add column") && has("not null") && !has("default") && !has("generated");
    takes_away.into_iter().any(has) || demands
}

#[test]
fn migrations_only_add_unless_they_say_that_they_break_earlier_versions() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir("migrations").expect("migrations") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let (number, title) = name.split_once('_').expect("a number and a title");
        let text = fs::read_to_string(&path).expect("a migration").to_lowercase();
        let lines = text.lines().map(|line| line.split("--").next().unwrap_or_default());
        let statements: String = lines.flat_map(|line| [line, "\n"]).collect();
        let is_free = number.parse::<u32>().expect("a number") <= LAST_FREE_MIGRATION || title.starts_with("breaking_");
        if !is_free {
            wrong.extend(statements.split(';').filter(|one| breaks(one)).map(|one| format!("{name}: {}", one.trim())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (statement, is_breaking) in [
        ("alter table accounts add column moving text", false),
        ("alter table a add column b text not null default 'x'", false),
        ("alter table a add column b text not null", true),
        ("alter table a drop column b", true),
        ("alter table a rename b to c", true),
        ("drop index a", false),
    ] {
        assert_eq!(breaks(statement), is_breaking, "{statement}");
    }
}

/// Lines of a file.
const MAX_LINES: usize = 400;

#[test]
fn files_are_short_enough_to_be_read() {
    let mut files = Vec::new();
    ["src", "tests", "training"].into_iter().for_each(|dir| rust_files(Path::new(dir), &mut files));
    let lengths = files.iter().map(|file| (file, fs::read_to_string(file).expect("a source file").lines().count()));
    let long: Vec<String> = lengths
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(file, lines)| format!("{}: {lines}", file.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}
