//! The database cluster: making it, once, and the URL that leads to it.

use std::fs;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::error::{StartError, end_of, file_error};
use super::place::{Place, random_hex};
use super::programs::Programs;

/// The role and, since it is PostgreSQL's own, the database of the service.
const ROLE: &str = "vat";
const DATABASE: &str = "postgres";
/// The name of the socket, which has the form of a port. Nothing listens on TCP.
pub(super) const PORT: u16 = 5432;
/// What the name of a cluster in the making begins with.
const UNFINISHED: &str = "cluster.new";
/// How much of what initdb says goes into an error.
const OUTPUT_BYTES: usize = 2_000;
/// What need not be encoded in a path inside a query.
const PLAIN_IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// A cluster that exists, with the programs that fit it.
#[derive(Debug)]
pub(super) struct Cluster {
    programs: Programs,
    password: String,
}

impl Cluster {
    /// Finds the cluster of `place`, or makes it. To be called in this process's turn.
    pub(super) async fn prepare(place: &Place) -> Result<Cluster, StartError> {
        let path = place.cluster();
        remove_unfinished(place.root());
        if path.is_dir() {
            let file = path.join("PG_VERSION");
            let version = fs::read_to_string(&file).map_err(file_error("read", &file))?;
            let programs = Programs::find(place, version.trim().parse().ok()).await?;
            return Ok(Cluster { programs, password: read_password(place)? });
        }
        let programs = Programs::find(place, None).await?;
        let password = random_hex();
        place.write_secret(&place.root().join("password"), &password)?;
        // A name of its own: an initdb whose service was killed may still write to one that was begun before.
        let unfinished = place.root().join(format!("{UNFINISHED}-{}", random_hex()));
        place.make_directory(&unfinished, 0o700, true)?;
        initdb(place, &programs, &unfinished).await?;
        fs::rename(&unfinished, &path).map_err(file_error("create", &path))?;
        Ok(Cluster { programs, password })
    }

    pub(super) fn programs(&self) -> &Programs {
        &self.programs
    }

    pub(super) fn url(&self, place: &Place) -> String {
        url(place, &self.password)
    }
}

/// Removes clusters that were never finished. One that an orphan still writes to may stay, until the next start.
fn remove_unfinished(root: &Path) {
    let found = fs::read_dir(root).into_iter().flatten().flatten();
    for left in found.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED)) {
        if let Err(error) = fs::remove_dir_all(left.path()) {
            tracing::debug!(%error, path = %left.path().display(), "an unfinished cluster is left for now");
        }
    }
}

/// The URL of the server of `place`. It is the same for as long as the cluster lives.
pub(super) fn url(place: &Place, password: &str) -> String {
    let socket = place.socket_directory();
    let socket = utf8_percent_encode(&socket.to_string_lossy(), PLAIN_IN_PATH).to_string();
    format!("postgres://{ROLE}:{password}@localhost:{PORT}/{DATABASE}?host={socket}&sslmode=disable")
}

pub(super) fn read_password(place: &Place) -> Result<String, StartError> {
    let path = place.root().join("password");
    Ok(fs::read_to_string(&path).map_err(file_error("read", &path))?.trim_end().to_owned())
}

async fn initdb(place: &Place, programs: &Programs, directory: &Path) -> Result<(), StartError> {
    let mut command = place.command(&programs.initdb());
    command.arg("--pgdata").arg(directory).arg("--pwfile").arg(place.root().join("password")).args([
        "--username",
        ROLE,
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--data-checksums",
    ]);
    let output = tokio::process::Command::from(command)
        .output()
        .await
        .map_err(|source| StartError::Program { program: programs.initdb(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(StartError::Initdb { output: end_of(&said, OUTPUT_BYTES) })
}
