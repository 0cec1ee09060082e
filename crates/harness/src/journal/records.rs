//! A file of finished parts of a measurement. Each part is on disk before the next one starts, so
//! that an interrupted measurement resumes where it stopped. Works for any serialisable record;
//! unlike a run's journal the file has no header, and its name identifies what it belongs to.

use std::fs::TryLockError;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::frame;
use selftest_text::disk::{Disk, OpenFile, OpenMode, SystemDisk};

/// A file of finished parts.
pub struct RecordFile<T> {
    disk: Arc<dyn Disk>,
    file: Arc<dyn OpenFile>,
    path: PathBuf,
    /// Bytes up to the end of the last complete record.
    length: u64,
    kind: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> RecordFile<T> {
    /// Opens the file and reads its records. A torn record at the end is cut off. A file that is
    /// damaged otherwise, or that another version wrote, starts over. A file that another process has
    /// open is refused.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<T>)> {
        Self::open_on(Arc::new(SystemDisk), path)
    }

    /// Like [`RecordFile::open`], on this disk.
    pub fn open_on(disk: Arc<dyn Disk>, path: &Path) -> io::Result<(Self, Vec<T>)> {
        if let Some(folder) = path.parent() {
            disk.create_folder(folder)?;
        }
        let file = disk.open(path, OpenMode::Create)?;
        // Two writers would cut and write over each other's records.
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = format!("another process is writing {}", path.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut bytes = Vec::new();
        file.reader()?.read_to_end(&mut bytes)?;
        // One unreadable record invalidates the file: another version wrote it.
        let read = frame::split_records(&bytes).ok().and_then(|frames| {
            let records = frames.texts.iter().map(|(_, text)| serde_json::from_slice(text).ok());
            Some((frames.length, records.collect::<Option<Vec<T>>>()?))
        });
        let (length, records) = read.unwrap_or_default();
        // Removes a torn or invalid tail before the next append.
        let length = length as u64;
        file.set_len(length)?;
        Ok((Self { disk, file, path: path.to_owned(), length, kind: PhantomData }, records))
    }

    /// Appends a record and flushes it to disk.
    pub fn append(&mut self, record: &T) -> io::Result<()> {
        let line = frame::encode_record(record)?;
        if let Err(error) = self.file.append(&line) {
            // A partial line would make the next record look like damage in the middle, for which the
            // whole file starts over.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += line.len() as u64;
        self.file.sync()
    }

    /// Deletes the file: the measurement is complete and stored elsewhere.
    pub fn finish(self) -> io::Result<()> {
        self.disk.remove(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn what_was_kept_is_there_again() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("new").join("records");
        let (mut records, none) = RecordFile::<String>::open(&path).unwrap();
        assert!(none.is_empty());
        records.append(&"one".to_owned()).unwrap();
        records.append(&"two".to_owned()).unwrap();
        drop(records);

        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 2]).unwrap();
        let (mut records, read) = RecordFile::<String>::open(&path).unwrap();
        assert_eq!(read, ["one"], "the second one is torn");
        records.append(&"three".to_owned()).unwrap();
        drop(records);
        assert_eq!(RecordFile::<String>::open(&path).unwrap().1, ["one", "three"]);

        // Another version kept something else, or the disk is damaged.
        assert_eq!(RecordFile::<u32>::open(&path).unwrap().1, [0_u32; 0]);
        assert_eq!(fs::read(&path).unwrap(), b"");
        RecordFile::<u32>::open(&path).unwrap().0.finish().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_file_has_one_writer() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("records");
        let (mut records, _) = RecordFile::<String>::open(&path).unwrap();
        records.append(&"one".to_owned()).unwrap();
        let refused = RecordFile::<String>::open(&path).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(refused.to_string().contains(&path.display().to_string()), "{refused}");
        records.append(&"two".to_owned()).unwrap();
        drop(records);
        assert_eq!(RecordFile::<String>::open(&path).unwrap().1, ["one", "two"]);
    }
}
