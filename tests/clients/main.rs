//! Clients as integrators have them: generated from the OpenAPI document, and the programs of `examples/`, against the
//! service as a process of its own.
//!
//! Generators come from npm and PyPI into the target folder, once. Where npm or Python is missing, the test says so.

#[path = "../support/mod.rs"]
mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use support::{TestDatabase, database};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_vat-classification");
/// How long the service may take to start.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the TypeScript client is made and compiled with.
const PACKAGES: &str = r#"{"private": true, "type": "module", "dependencies": {"@types/node": "20.19.43",
    "openapi-fetch": "0.17.0", "openapi-typescript": "7.13.0", "typescript": "5.9.3"}}"#;
/// What the Python client is made with.
const PYTHON_GENERATOR: &str = "openapi-python-client==0.29.1";
/// Most calls of the new user's script, and how many of them may be to wait: a busy machine needs more of these.
const MOST_CALLS: (u32, u32) = (40, 4);

/// A service with a token of level ADMIN.
struct Service {
    url: String,
    token: String,
    _process: Child,
    _database: TestDatabase,
    _files: TempDir,
}

impl Service {
    async fn start() -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let (database, files) = (database().await, tempfile::tempdir().expect("a directory"));
        let program = |arguments: &[&str]| {
            let mut command = Command::new(PROGRAM);
            command.args(arguments).env("DATABASE_URL", &database.url).env("DATA_DIR", files.path());
            command.env("BIND_ADDR", address.to_string()).env("RUST_LOG", "warn").kill_on_drop(true);
            command.env_remove("PUBLIC_URL").env_remove("ELASTICSEARCH_URL").stdin(Stdio::null());
            command
        };
        let done = |output: std::process::Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
        program(&["account", "create", "shop"]).output().await.expect("an account");
        let token = ["token", "create", "--account", "shop", "--user", "anna", "--level", "ADMIN"];
        let token = done(program(&token).output().await.expect("a token"));
        let process = program(&["serve"]).stdout(Stdio::null()).spawn().expect("the service");
        let url = format!("http://{address}");
        let began = Instant::now();
        while !reqwest::get(format!("{url}/health/ready")).await.is_ok_and(|answer| answer.status().is_success()) {
            assert!(began.elapsed() < PATIENCE, "the service does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Service { url, token, _process: process, _database: database, _files: files }
    }

    /// Runs a program that talks to the service; what it prints.
    async fn run(&self, program: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).env("URL", &self.url).env("TOKEN", &self.token);
        run(command).await
    }
}

/// Runs a program to its end; what it prints.
async fn run(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.expect("a program");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {told}{wrong}", command.as_std());
    told
}

/// A folder that stays from one run to the next.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Whether a program is there; says so where it is not.
async fn has(program: &str, what: &str) -> bool {
    let there = Command::new(program).arg("--version").output().await.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("{program} is missing: {what} was NOT tested");
    }
    there
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// What clients print of these texts.
const TEXTS: [&str; 2] = ["Herren T-Shirt Baumwolle", "xyzzy"];

fn assert_classified(told: &str) {
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].starts_with("Herren T-Shirt Baumwolle\tASSIGNED\t610910-02-000"), "{told}");
    assert!(lines[1].starts_with("xyzzy\tUNASSIGNED"), "{told}");
}

#[tokio::test]
async fn a_generated_typescript_client_compiles_strictly_and_works() {
    if !(has("npm", "the generated client in TypeScript").await && has("node", "it").await) {
        return;
    }
    let service = Service::start().await;
    let folder = folder("typescript");
    let packages = folder.join("package.json");
    if std::fs::read_to_string(&packages).is_ok_and(|there| there == PACKAGES) && folder.join("node_modules").is_dir() {
        // Fetched by an earlier run.
    } else {
        std::fs::write(&packages, PACKAGES).expect("written");
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&folder);
        run(install).await;
    }
    let in_folder = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(folder.join("node_modules/.bin").join(program));
        command.args(arguments).current_dir(&folder);
        command
    };
    run(in_folder("openapi-typescript", &[&format!("{}/openapi.json", service.url), "-o", "schema.d.ts"])).await;
    std::fs::copy(example("client.ts"), folder.join("client.ts")).expect("copied");
    run(in_folder("tsc", &["--strict", "--target", "es2022", "--module", "nodenext", "client.ts"])).await;
    let script = folder.join("client.js");
    let script = script.to_str().expect("a path");
    assert_classified(&service.run(Path::new("node"), &[script, TEXTS[0], TEXTS[1]]).await);
}

#[tokio::test]
async fn a_generated_python_client_works() {
    if !has("python3", "the generated client in Python").await {
        return;
    }
    let service = Service::start().await;
    let folder = folder("python");
    let (python, generator) = (folder.join("env/bin/python"), folder.join("env/bin/openapi-python-client"));
    if !generator.is_file() {
        let mut environment = Command::new("python3");
        environment.args(["-m", "venv", "env"]).current_dir(&folder);
        run(environment).await;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYTHON_GENERATOR]);
        run(install).await;
    }
    let mut generate = Command::new(&generator);
    let url = format!("{}/openapi.json", service.url);
    generate.args(["generate", "--url", &url, "--meta", "none", "--overwrite", "--output-path", "vat_client"]);
    let path = std::env::var("PATH").unwrap_or_default();
    // The generator formats what it writes with a program that comes with it.
    generate.env("PATH", format!("{}:{path}", folder.join("env/bin").display()));
    run({
        generate.current_dir(&folder);
        generate
    })
    .await;
    let script = r#"
import os, sys
from vat_client import AuthenticatedClient
from vat_client.api.classification import classify
from vat_client.models import (ClassificationBody, ClassificationItem,
    ClassificationItemLanguageAttributes, LanguageAttributes, Taxonomy)

client = AuthenticatedClient(os.environ["URL"], os.environ["TOKEN"], raise_on_unexpected_status=True)
items = []
for text in sys.argv[1:]:
    texts = ClassificationItemLanguageAttributes()
    texts["de"] = LanguageAttributes(product_name=text)
    items.append(ClassificationItem(language_attributes=texts))
answer = classify.sync(client=client, body=ClassificationBody(taxonomy=Taxonomy.TARIC, items=items))
for text, item in zip(sys.argv[1:], answer.items):
    print(text, item.decision.assignment_status.value, item.decision.product_class or "-", sep="\t")
"#;
    std::fs::write(folder.join("use.py"), script).expect("written");
    let script = folder.join("use.py");
    let script = script.to_str().expect("a path");
    assert_classified(&service.run(&python, &[script, TEXTS[0], TEXTS[1]]).await);
}

#[tokio::test]
async fn the_programs_of_examples_do_what_they_say() {
    if !has("python3", "the programs of examples/").await {
        return;
    }
    let service = Service::start().await;
    let python = Path::new("python3");
    let path = example("client.py");
    assert_classified(&service.run(python, &[path.to_str().expect("a path"), TEXTS[0], TEXTS[1]]).await);
    let path = example("new_user.py");
    let told = service.run(python, &[path.to_str().expect("a path")]).await;
    for line in [
        "imported: 2000 new, 0 changed, 0 refused",
        "TARIC ASSIGNED: ",
        "UKGT ASSIGNED: ",
        "coffee that is not from Nord: 75",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert_eq!(told.matches("deleted: 1000").count(), 2, "{told}");
    let last = told.lines().last().expect("a line");
    let numbers: Vec<u32> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [calls, polls, ..] = numbers[..] else { panic!("{last}") };
    assert!(calls - polls + polls.min(MOST_CALLS.1) <= MOST_CALLS.0, "{told}");
    println!("{last}");
}
