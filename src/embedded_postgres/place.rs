//! Where the database lies, and as whom its server runs.
//!
//! An ordinary user runs the server as himself, in `DATA_DIR/postgres`. Root must not: its server runs as another user,
//! who has to be able to reach the directory. Where DATA_DIR lies under a directory that only root may enter, such as
//! `/root`, the database lies in `/var/lib/vat-classification` instead and `DATA_DIR/postgres.place` says where.
//! (`/var/tmp` would be no place for it: it is emptied of what has not been touched for a month.)

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use super::error::{StartError, file_error};

/// Root's databases that cannot lie in their data directory.
const ELSEWHERE: &str = "/var/lib/vat-classification";
/// Whom root runs the server as: the first that exists.
const SERVER_USERS: [&str; 2] = ["postgres", "nobody"];
/// The longest path of a directory for the socket. The system's limit is 104 to 108 bytes for the socket itself, whose
/// name and lock suffix take 22.
const SOCKET_DIRECTORY_BYTES: usize = 80;
/// Everyone may pass through, nobody may look around.
const PASS_THROUGH: u32 = 0o711;
/// For the owner alone.
const PRIVATE: u32 = 0o700;

/// The directory of a database, and who runs its server.
#[derive(Debug, Clone)]
pub(super) struct Place {
    root: PathBuf,
    user: Option<ServerUser>,
}

/// An unprivileged user whom root starts the server as.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerUser {
    name: String,
    uid: u32,
    gid: u32,
}

impl Place {
    /// Finds or makes the place of `data_dir`.
    pub(super) fn prepare(data_dir: &Path) -> Result<Place, StartError> {
        fs::create_dir_all(data_dir).map_err(file_error("create", data_dir))?;
        let data_dir = data_dir.canonicalize().map_err(file_error("open", data_dir))?;
        let place = match Place::existing(&data_dir) {
            Some(place) => place,
            None => Place::choose(&data_dir)?,
        };
        place.make_directory(&place.root, if place.user.is_some() { PASS_THROUGH } else { PRIVATE }, false)?;
        if let Some(user) = &place.user
            && !user.can_enter(&place.root)
        {
            return Err(StartError::Unreachable { user: user.name.clone(), path: place.root.clone() });
        }
        place.make_directory(&place.socket_directory(), PASS_THROUGH, true)?;
        Ok(place)
    }

    /// The place of `data_dir` if a database has been made there, with its owner as the server's user.
    pub(super) fn existing(data_dir: &Path) -> Option<Place> {
        let data_dir = data_dir.canonicalize().ok()?;
        let root = pointed_to(&data_dir).unwrap_or_else(|| data_dir.join("postgres"));
        let owner = fs::metadata(root.join("cluster")).ok()?;
        let user = is_root().then(|| ServerUser {
            name: format!("number {}", owner.uid()),
            uid: owner.uid(),
            gid: owner.gid(),
        });
        Some(Place { root, user })
    }

    fn choose(data_dir: &Path) -> Result<Place, StartError> {
        if !is_root() {
            return Ok(Place { root: data_dir.join("postgres"), user: None });
        }
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let user = server_user(&passwd).ok_or(StartError::NoServerUser)?;
        let root = match pointed_to(data_dir) {
            Some(root) => root,
            None if user.can_enter(data_dir) => data_dir.join("postgres"),
            None => elsewhere(data_dir)?,
        };
        Ok(Place { root, user: Some(user) })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// PostgreSQL's own data directory.
    pub(super) fn cluster(&self) -> PathBuf {
        self.root.join("cluster")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.root.join("server.log")
    }

    pub(super) fn socket_directory(&self) -> PathBuf {
        let inside = self.root.join("socket");
        if inside.as_os_str().len() <= SOCKET_DIRECTORY_BYTES {
            return inside;
        }
        PathBuf::from(format!("/tmp/vat-postgres-{}", short_hash(&self.root)))
    }

    /// A command that runs as the server's user, in a directory that everyone may enter, without any `PG…` setting that
    /// is meant for another server.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").env("LC_ALL", "C").stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        if let Some(user) = &self.user {
            // The standard library also drops root's supplementary groups here.
            command.uid(user.uid).gid(user.gid);
        }
        command
    }

    /// Makes a directory with exactly these rights, or sets them on the one that is there. One for the server belongs to
    /// its user; one that belongs to somebody else, or is a link, is refused: he could read or replace what is in it.
    pub(super) fn make_directory(&self, path: &Path, mode: u32, for_server: bool) -> Result<(), StartError> {
        let made = || -> io::Result<()> {
            match DirBuilder::new().mode(PRIVATE).create(path) {
                Ok(()) if for_server => self.give_to_server(path)?,
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let found = fs::symlink_metadata(path)?;
            let own = rustix::process::geteuid().as_raw();
            let owner = self.user.as_ref().filter(|_| for_server).map_or(own, |user| user.uid);
            if !found.is_dir() || (found.uid() != owner && found.uid() != own) {
                return Err(io::Error::other("it is there already and belongs to another user"));
            }
            self.give_to_server_if(for_server, path)?;
            fs::set_permissions(path, Permissions::from_mode(mode))
        };
        made().map_err(file_error("create", path))
    }

    /// Writes a file that only the server's user and root may read, whole or not at all.
    pub(super) fn write_secret(&self, path: &Path, content: &str) -> Result<(), StartError> {
        let unfinished = path.with_extension("new");
        let written = || -> io::Result<()> {
            let mut file =
                fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&unfinished)?;
            file.write_all(content.as_bytes())?;
            file.sync_all()?;
            self.give_to_server(&unfinished)?;
            fs::rename(&unfinished, path)
        };
        written().map_err(file_error("write", path))
    }

    fn give_to_server_if(&self, wanted: bool, path: &Path) -> io::Result<()> {
        if wanted { self.give_to_server(path) } else { Ok(()) }
    }

    fn give_to_server(&self, path: &Path) -> io::Result<()> {
        match &self.user {
            Some(user) => std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid)),
            None => Ok(()),
        }
    }
}

impl ServerUser {
    /// Whether this user may pass through all directories on the way. The system is asked, since only it knows about
    /// access lists and mounts.
    fn can_enter(&self, directory: &Path) -> bool {
        Command::new("test")
            .arg("-x")
            .arg(directory)
            .current_dir("/")
            .uid(self.uid)
            .gid(self.gid)
            .status()
            .is_ok_and(|status| status.success())
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn pointer(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres.place")
}

/// Makes a directory for `data_dir` outside of it and remembers where. Its name has a random part: a data directory that
/// was deleted and made again is a new one, with a new database.
fn elsewhere(data_dir: &Path) -> Result<PathBuf, StartError> {
    let shelf = Path::new(ELSEWHERE);
    fs::create_dir_all(shelf).map_err(file_error("create", shelf))?;
    fs::set_permissions(shelf, Permissions::from_mode(PASS_THROUGH)).map_err(file_error("open", shelf))?;
    let hash = short_hash(data_dir);
    for older in fs::read_dir(shelf).map_err(file_error("read", shelf))?.flatten() {
        if older.file_name().to_string_lossy().starts_with(&hash) {
            eprintln!(
                "{} holds the database of an earlier {}; delete it if it is no longer wanted.",
                older.path().display(),
                data_dir.display()
            );
        }
    }
    let root = shelf.join(format!("{hash}-{}", &random_hex()[..8]));
    // Whole or not at all: half of it would lead nowhere.
    let (pointer, aside) = (pointer(data_dir), data_dir.join("postgres.place.new"));
    let written = fs::write(&aside, format!("{}\n", root.display())).and_then(|()| fs::File::open(&aside)?.sync_all());
    written.and_then(|()| fs::rename(&aside, &pointer)).map_err(file_error("write", &pointer))?;
    Ok(root)
}

/// Where the database lies that was put elsewhere; what is no absolute path was written by halves and leads nowhere.
fn pointed_to(data_dir: &Path) -> Option<PathBuf> {
    let path = PathBuf::from(fs::read_to_string(pointer(data_dir)).ok()?.trim_end());
    path.is_absolute().then_some(path)
}

fn short_hash(path: &Path) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(path.as_os_str().as_encoded_bytes())[..8])
}

/// The first of [`SERVER_USERS`] in the text of `/etc/passwd`.
fn server_user(passwd: &str) -> Option<ServerUser> {
    let named = |wanted: &&str| {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| name == wanted)?;
            let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            (uid != 0).then(|| ServerUser { name: name.to_owned(), uid, gid })
        })
    };
    SERVER_USERS.iter().find_map(named)
}

/// 128 random bits, written with 32 characters.
pub(super) fn random_hex() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_by_halves_leads_nowhere() {
        let directory = tempfile::tempdir().expect("a directory");
        for (written, wanted) in [("", None), ("var/lib\n", None), ("/a/b\n", Some("/a/b"))] {
            fs::write(pointer(directory.path()), written).expect("written");
            assert_eq!(pointed_to(directory.path()).as_deref(), wanted.map(Path::new), "{written:?}");
        }
        fs::remove_file(pointer(directory.path())).expect("gone");
        assert_eq!(pointed_to(directory.path()), None);
    }

    #[test]
    fn the_server_user_is_the_first_known_unprivileged_one() {
        let cases = [
            (
                "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533:nobody:/:/bin/false\n",
                Some(("nobody", 65534, 65533)),
            ),
            ("nobody:x:65534:65534::/:\npostgres:x:101:104:a,b:/var/lib:/bin/bash", Some(("postgres", 101, 104))),
            ("postgres:x:0:0::/:\nnobody:x:7:8::/:", Some(("nobody", 7, 8))),
            ("postgres:x:many:1::/:", None),
            ("postgresql:x:5:5::/:", None),
            ("", None),
        ];
        for (passwd, wanted) in cases {
            let wanted = wanted.map(|(name, uid, gid)| ServerUser { name: name.to_owned(), uid, gid });
            assert_eq!(server_user(passwd), wanted, "{passwd}");
        }
    }

    #[test]
    fn a_socket_directory_is_always_short_enough() {
        for length in [1, 40, 72, 73, 200] {
            let place = Place { root: PathBuf::from(format!("/{}", "x".repeat(length))), user: None };
            assert!(place.socket_directory().as_os_str().len() <= SOCKET_DIRECTORY_BYTES, "{length}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Place { root: directory.path().to_path_buf(), user: None };
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).expect("a link");
        place.make_directory(&link, PRIVATE, true).expect_err("a link is refused");
    }
}
