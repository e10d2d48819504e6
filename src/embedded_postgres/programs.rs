//! The server programs: those of the machine, else the pinned bundle.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::bundle;
use super::error::StartError;
use super::place::Place;

/// The oldest major version that the service is meant for; older ones are passed over.
const OLDEST_MAJOR: u32 = 14;
/// Where packages put server programs, each in a directory of a major version's name, with the subdirectory they use.
const PACKAGE_DIRECTORIES: [(&str, &str); 4] =
    [("/usr/lib/postgresql", "bin"), ("/opt/homebrew/opt", "bin"), ("/usr/local/opt", "bin"), ("/usr", "bin")];

/// A directory with `initdb` and `postgres` of one major version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programs {
    directory: PathBuf,
    major: u32,
}

impl Programs {
    /// Programs of exactly `major`, for a cluster that exists; of any version, the newest first, for a new one.
    pub(super) async fn find(place: &Place, major: Option<u32>) -> Result<Programs, StartError> {
        let fits = |programs: &Programs| major.is_none_or(|major| major == programs.major);
        if let Some(installed) = installed().into_iter().find(fits) {
            return Ok(installed);
        }
        match major {
            Some(major) if major != bundle::MAJOR => Err(StartError::VersionGone { path: place.cluster(), major }),
            _ => Ok(Programs { directory: bundle::directory(place).await?, major: bundle::MAJOR }),
        }
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.directory.join("initdb")
    }

    pub(super) fn postgres(&self) -> PathBuf {
        self.directory.join("postgres")
    }
}

/// All usable installations on this machine, newest first.
fn installed() -> Vec<Programs> {
    let mut found: Vec<Programs> = candidates().iter().filter_map(|directory| inspect(directory)).collect();
    found.sort_by_key(|programs| std::cmp::Reverse(programs.major));
    found
}

fn candidates() -> Vec<PathBuf> {
    let mut directories = Vec::new();
    if let Ok(answer) = Command::new("pg_config").arg("--bindir").output()
        && answer.status.success()
    {
        directories.push(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim()));
    }
    for (parent, inner) in PACKAGE_DIRECTORIES {
        let named_so = |name: &str| {
            name.starts_with("postgresql@")
                || name.starts_with("pgsql-")
                || name.bytes().all(|byte| byte.is_ascii_digit())
        };
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        directories.extend(
            entries.filter(|entry| entry.file_name().to_str().is_some_and(named_so)).map(|e| e.path().join(inner)),
        );
    }
    directories
}

/// A client package alone has `pg_config` and no server: both programs have to be there.
fn inspect(directory: &Path) -> Option<Programs> {
    let (initdb, postgres) = (directory.join("initdb"), directory.join("postgres"));
    if !initdb.is_file() {
        return None;
    }
    let answer = Command::new(postgres).arg("-V").output().ok().filter(|answer| answer.status.success())?;
    let major = major_version(&String::from_utf8_lossy(&answer.stdout)).filter(|major| *major >= OLDEST_MAJOR)?;
    Some(Programs { directory: directory.to_path_buf(), major })
}

/// The 17 of `postgres (PostgreSQL) 17.11 (Debian 17.11-1)`.
fn major_version(answer: &str) -> Option<u32> {
    let (_, version) = answer.split_once("(PostgreSQL)")?;
    let digits = version.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_what_postgres_says() {
        let cases = [
            ("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 18beta1\n", Some(18)),
            ("postgres (PostgreSQL) 17\n", Some(17)),
            ("postgres (EnterpriseDB) 17\n", None),
            ("", None),
        ];
        for (answer, wanted) in cases {
            assert_eq!(major_version(answer), wanted, "{answer:?}");
        }
    }

    #[test]
    fn a_directory_without_a_server_is_passed_over() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(inspect(directory.path()), None);
    }
}
