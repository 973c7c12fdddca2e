//! `--capture-dir`: captures as files, of a bounded number and size, the oldest removed first.
//!
//! The traps: a reader must never find half a file, so each is written under another name first; what a
//! crash left of such is removed, but not what another klamp is writing there now; and nothing is
//! removed that klamp has not written, whatever else lies in the directory.

use super::Capture;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Ends the name of a file that is being written.
const UNFINISHED: &str = ".klamp-unfinished";
/// A file that has been unfinished for so long is what a crash left.
const STALE: Duration = Duration::from_secs(60);
/// Characters of a file's name that tell the reason.
const REASON: usize = 48;

/// How much a directory may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryBounds {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

/// Writes a capture in the form of a file.
pub(super) type Encode = fn(&Capture, &mut dyn Write) -> io::Result<()>;

/// A directory of captures.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    bounds: DirectoryBounds,
    encode: Encode,
}

/// Why a capture was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// There is no room: on the disk, or within the bounds.
    #[error("no room: {0}")]
    Full(io::Error),
    #[error("{0}")]
    Other(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => Self::Full(error),
            _ => Self::Other(error),
        }
    }
}

impl Directory {
    /// Fails where no file can be written there.
    pub(super) fn open(path: PathBuf, bounds: DirectoryBounds, encode: Encode) -> io::Result<Self> {
        let directory = Self {
            path,
            bounds,
            encode,
        };
        let probe = directory
            .path
            .join(format!(".klamp-probe-{}{UNFINISHED}", std::process::id()));
        let _ = fs::remove_file(&probe);
        create(&probe)?;
        fs::remove_file(&probe)?;
        directory.remove_stale()?;
        Ok(directory)
    }

    /// Writes a capture, or what it has become: the file is then there as a whole, readable by its owner
    /// alone, and older ones have made room for it.
    pub(super) fn write(&self, capture: &Capture) -> Result<String, Failure> {
        let name = file_name(capture);
        let unfinished = self.path.join(format!(".{name}{UNFINISHED}"));
        let written = self
            .write_to(&unfinished, capture)
            .and_then(|bytes| self.make_room(bytes, &name))
            .and_then(|()| Ok(fs::rename(&unfinished, self.path.join(&name))?));
        match written {
            Ok(()) => Ok(name),
            Err(failure) => {
                let _ = fs::remove_file(&unfinished);
                Err(failure)
            }
        }
    }

    fn write_to(&self, path: &Path, capture: &Capture) -> Result<u64, Failure> {
        // (of an earlier attempt of this process that failed, if of any: nobody else has its name)
        let _ = fs::remove_file(path);
        let mut out = BufWriter::new(create(path)?);
        (self.encode)(capture, &mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }

    /// Removes the oldest captures until one more, or another `name`, of so many bytes may be there.
    fn make_room(&self, bytes: u64, name: &str) -> Result<(), Failure> {
        if bytes > self.bounds.bytes {
            let error = format!("{bytes} bytes are more than --capture-dir-max-bytes");
            return Err(Failure::Full(io::Error::other(error)));
        }
        let mut files = self.captures()?;
        files.retain(|(is, _)| is != name);
        let mut held: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        let mut number = files.len();
        for (oldest, size) in files {
            if number < self.bounds.files && held + bytes <= self.bounds.bytes {
                break;
            }
            remove(&self.path.join(oldest))?;
            number -= 1;
            held -= size;
        }
        Ok(())
    }

    /// klamp's own files with their sizes, the oldest first.
    fn captures(&self) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            // (another klamp may have removed it meanwhile)
            if is_capture(&name)
                && let Ok(metadata) = entry.metadata()
                && metadata.is_file()
            {
                files.push((name, metadata.len()));
            }
        }
        // (their names begin with the time)
        files.sort();
        Ok(files)
    }

    fn remove_stale(&self) -> io::Result<()> {
        let now = SystemTime::now();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_ours = name.starts_with(".klamp-") && name.ends_with(UNFINISHED);
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            let age = written
                .ok()
                .and_then(|written| now.duration_since(written).ok());
            if is_ours && age.is_some_and(|age| age > STALE) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// Creates a file that its owner alone may read, where there is none, not even a link.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Another klamp may have been first.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// `klamp-<time>-<id>-<reason>.pcapng`: files sort by age. The time is that of the capture in UTC, to the
/// microsecond, so that two processes do not choose the same.
pub(crate) fn file_name(capture: &Capture) -> String {
    let time = humantime::format_rfc3339_micros(capture.taken).to_string();
    let time = time.replace(['-', ':'], "");
    let safe = |c: char| match c {
        'µ' => 'u',
        _ if c.is_ascii_alphanumeric() || c == '_' => c,
        _ => '-',
    };
    let reason: String = capture.reason.chars().map(safe).take(REASON).collect();
    let words: Vec<_> = reason.split('-').filter(|word| !word.is_empty()).collect();
    format!("klamp-{time}-{}-{}.pcapng", capture.id, words.join("-"))
}

/// Whether [`file_name`] makes such names.
fn is_capture(name: &str) -> bool {
    let parts = || {
        let rest = name.strip_prefix("klamp-")?.strip_suffix(".pcapng")?;
        let (time, rest) = rest.split_once('-')?;
        let (id, _) = rest.split_once('-')?;
        Some((time, id))
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    parts().is_some_and(|(time, id)| {
        let time = time.strip_suffix('Z').unwrap_or_default();
        let (date, clock) = time.split_once('T').unwrap_or_default();
        date.len() == 8
            && digits(date)
            && clock.len() == 13
            && digits(&clock.replacen('.', "", 1))
            && digits(id)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Scratch, capture};
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const BOUNDS: DirectoryBounds = DirectoryBounds {
        files: 3,
        bytes: 1_000,
    };

    /// As many bytes as the capture's frames say.
    fn encode(capture: &Capture, out: &mut dyn Write) -> io::Result<()> {
        let bytes = capture
            .frames
            .all()
            .iter()
            .map(|frame| frame.bytes as usize)
            .sum();
        out.write_all(&vec![b'x'; bytes])
    }

    fn failing(_: &Capture, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"the first half")?;
        Err(Errno::NOSPC.into())
    }

    fn open(scratch: &Scratch) -> Directory {
        Directory::open(scratch.0.clone(), BOUNDS, encode).unwrap()
    }

    #[test]
    fn a_file_tells_its_time_id_and_reason_and_is_for_its_owner_alone() {
        let scratch = Scratch::new();
        let mut capture = capture(7, 100);
        capture.taken = SystemTime::UNIX_EPOCH + Duration::from_micros(1_000_000_000_000_123);
        capture.reason = "UNNAMED_250 in ../Produce\n".to_owned();
        let name = open(&scratch).write(&capture).unwrap();
        assert_eq!(
            name,
            "klamp-20010909T014640.000123Z-7-UNNAMED_250-in-Produce.pcapng"
        );
        capture.reason = "slow Fetch: 12.3µs late".to_owned();
        assert!(file_name(&capture).ends_with("-slow-Fetch-12-3us-late.pcapng"));
        let metadata = fs::metadata(scratch.0.join(&name)).unwrap();
        assert_eq!(metadata.len(), 100);
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert_eq!(scratch.names(), [name]);
    }

    #[test]
    fn the_oldest_files_make_room_and_those_of_others_stay() {
        let scratch = Scratch::new();
        let directory = open(&scratch);
        let others = [
            "klamp.pcapng",
            "klamp-1-2-3.pcapng",
            "klamp-20010909T014640.000123Z-x-y.pcapng",
            "a",
        ];
        for other in others {
            fs::write(scratch.0.join(other), vec![0; 2_000]).unwrap();
        }
        fs::create_dir(
            scratch
                .0
                .join("klamp-20000101T000000.000000Z-1-folder.pcapng"),
        )
        .unwrap();
        let write = |id, bytes| {
            let mut capture = capture(id, bytes);
            capture.taken += Duration::from_secs(id);
            directory.write(&capture).unwrap()
        };
        let ids = || {
            let files = directory.captures().unwrap();
            let id =
                |(name, _): &(String, u64)| name.split('-').nth(2).unwrap().parse::<u64>().unwrap();
            files.iter().map(id).collect::<Vec<_>>()
        };
        (9..=12).for_each(|id| drop(write(id, 10)));
        assert_eq!(ids(), [10, 11, 12], "three files at most");
        write(13, 985);
        assert_eq!(ids(), [12, 13], "1000 bytes at most");
        write(13, 995);
        assert_eq!(ids(), [13], "it has grown");
        assert_eq!(scratch.names().len(), 6, "{:?}", scratch.names());
    }

    #[test]
    fn what_is_larger_than_the_directory_may_hold_is_not_written_and_nothing_removed_for_it() {
        let scratch = Scratch::new();
        let directory = open(&scratch);
        let before = directory.write(&capture(1, 10)).unwrap();
        let failure = directory.write(&capture(2, 1_001)).unwrap_err();
        assert!(matches!(failure, Failure::Full(_)), "{failure}");
        assert_eq!(scratch.names(), [before]);
    }

    #[test]
    fn a_disk_that_is_full_leaves_neither_half_a_file_nor_a_hidden_one() {
        let scratch = Scratch::new();
        let directory = Directory::open(scratch.0.clone(), BOUNDS, failing).unwrap();
        let failure = directory.write(&capture(1, 10)).unwrap_err();
        assert!(matches!(failure, Failure::Full(_)), "{failure}");
        assert!(scratch.names().is_empty(), "{:?}", scratch.names());
    }

    #[test]
    fn what_a_crash_left_is_removed_and_what_is_being_written_is_not() {
        let scratch = Scratch::new();
        let (left, fresh) = (
            format!(".klamp-1{UNFINISHED}"),
            format!(".klamp-2{UNFINISHED}"),
        );
        for name in [&left, &fresh] {
            fs::write(scratch.0.join(name), b"half").unwrap();
        }
        let long_ago = SystemTime::now() - STALE * 2;
        let file = File::options()
            .write(true)
            .open(scratch.0.join(&left))
            .unwrap();
        file.set_modified(long_ago).unwrap();
        open(&scratch);
        assert_eq!(scratch.names(), [fresh]);
    }

    #[test]
    fn where_nothing_can_be_written_the_directory_is_refused() {
        let scratch = Scratch::new();
        let file = scratch.0.join("file");
        fs::write(&file, b"").unwrap();
        let missing = scratch.0.join("missing");
        for path in [file, missing, "/proc".into()] {
            assert!(
                Directory::open(path.clone(), BOUNDS, encode).is_err(),
                "{path:?}"
            );
        }
    }

    #[test]
    fn a_directory_that_goes_away_is_a_failure_and_no_more() {
        let scratch = Scratch::new();
        let directory = open(&scratch);
        fs::remove_dir_all(&scratch.0).unwrap();
        let failure = directory.write(&capture(1, 10)).unwrap_err();
        assert!(matches!(failure, Failure::Other(_)), "{failure}");
        fs::create_dir(&scratch.0).unwrap();
        assert!(directory.write(&capture(1, 10)).is_ok());
    }
}
