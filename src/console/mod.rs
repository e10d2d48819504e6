//! The reviewer's console: pages and scripts that are part of the program, and nothing else. It is a client of the public
//! interface: what it shows and does goes through the same requests that every client sends.
//!
//! The scripts are ES modules without a build step. They lie below a folder that is named after the hash of them all, so
//! that browsers may keep them for ever and still get the ones that belong to the page.

use std::sync::LazyLock;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Characters of the hash that names the folder of the assets.
const HASH_CHARS: usize = 16;
/// What stands in the page for the folder of the assets.
const FOLDER_MARK: &str = "{assets}";
/// What stands in the page for the links that load its scripts ahead.
const MODULES_MARK: &str = "{modules}";
/// Where the assets lie, before their hash.
pub const ASSETS_PATH: &str = "/console/assets";

/// A file of the console.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its name in the folder.
    pub name: &'static str,
    /// Its content type.
    pub kind: &'static str,
    /// Its text.
    pub text: &'static str,
}

const PAGE: &str = include_str!("assets/index.html");
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($name:literal, $kind:expr) => {
        Asset { name: $name, kind: $kind, text: include_str!(concat!("assets/", $name)) }
    };
}

/// Every file but the page.
pub const ASSETS: [Asset; 17] = [
    asset!("account.js", SCRIPT),
    asset!("api.js", SCRIPT),
    asset!("assignments.js", SCRIPT),
    asset!("charts.js", SCRIPT),
    asset!("console.css", "text/css; charset=utf-8"),
    asset!("dom.js", SCRIPT),
    asset!("icon.svg", "image/svg+xml"),
    asset!("main.js", SCRIPT),
    asset!("parts.js", SCRIPT),
    asset!("product.js", SCRIPT),
    asset!("queue.js", SCRIPT),
    asset!("search.js", SCRIPT),
    asset!("start.js", SCRIPT),
    asset!("table.js", SCRIPT),
    asset!("text.js", SCRIPT),
    asset!("upload.js", SCRIPT),
    asset!("words.js", SCRIPT),
];

/// Hash of all files; it changes with any of them.
pub static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for asset in ASSETS {
        digest.update(asset.name);
        digest.update([0]);
        digest.update(asset.text);
    }
    let mut hash = HEXLOWER.encode(&digest.finalize());
    hash.truncate(HASH_CHARS);
    hash
});

/// The page, which names the assets that belong to it: all scripts at once, so that none is found only by reading another.
pub static INDEX: LazyLock<String> = LazyLock::new(|| {
    let scripts = ASSETS.iter().filter(|asset| asset.kind == SCRIPT);
    let preloads: String =
        scripts.map(|asset| format!("<link rel=\"modulepreload\" href=\"{FOLDER_MARK}/{}\">\n", asset.name)).collect();
    PAGE.replace(MODULES_MARK, preloads.trim_end()).replace(FOLDER_MARK, &format!("{ASSETS_PATH}/{}", HASH.as_str()))
});

/// The file of a name, when the folder is that of this program.
pub fn asset(hash: &str, name: &str) -> Option<Asset> {
    ASSETS.into_iter().find(|asset| asset.name == name).filter(|_| hash == HASH.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_a_script_imports_is_there_and_none_is_left_over() {
        let mut named: Vec<&str> = vec!["main.js", "console.css", "icon.svg"];
        for file in ASSETS.iter().filter(|asset| asset.kind == SCRIPT) {
            for import in file.text.split("from './").skip(1) {
                named.push(import.split('\'').next().expect("a name"));
            }
        }
        let missing: Vec<&&str> = named.iter().filter(|name| !ASSETS.iter().any(|file| file.name == **name)).collect();
        let unused: Vec<&str> = ASSETS.iter().map(|file| file.name).filter(|name| !named.contains(name)).collect();
        assert!(missing.is_empty() && unused.is_empty(), "missing {missing:?}, unused {unused:?}");
        assert!(INDEX.contains(HASH.as_str()) && !INDEX.contains(FOLDER_MARK) && !INDEX.contains(MODULES_MARK));
        assert!(asset(&HASH, "main.js").is_some() && asset("0", "main.js").is_none() && asset(&HASH, "x").is_none());
    }

    #[test]
    fn no_script_makes_markup_of_text() {
        for file in ASSETS.iter().filter(|asset| asset.kind == SCRIPT) {
            for dangerous in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
            {
                assert!(!file.text.contains(dangerous), "{} has {dangerous}", file.name);
            }
        }
    }
}
