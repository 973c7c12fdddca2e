//! A child process that cannot outlive the tests, nor can those that it forks, with its output in a
//! file.
//!
//! The trap: a broker shared by the tests of a file lives in a static, statics are never dropped,
//! and a test process that is killed drops nothing at all. So each child has a guard: a shell that
//! waits at a pipe whose other end only this process holds. However this process ends, the pipe
//! closes, and the guard kills the child and removes its data. The child is the first of a process
//! group, and the whole of it is killed: a master's workers would go on without it.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running child process. Killed on drop; its output is kept, and named if the thread is panicking.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    guard: Child,
    room: PathBuf,
    data: Option<PathBuf>,
}

impl Process {
    /// Starts `command` with its output in the files `out` and `err` of `room`. `data` is removed
    /// when it has ended.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn spawn(
        name: &str,
        mut command: Command,
        input: Stdio,
        room: &Path,
        data: Option<&Path>,
    ) -> Self {
        let file = |name| File::create(room.join(name)).expect("a room can be written to");
        let child = command
            .stdin(input)
            .stdout(file("out"))
            .stderr(file("err"))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {name}: {e}: {command:?}"));
        let guard = Command::new("sh")
            .arg("-c")
            .arg(r#"read -r ended || { kill -KILL "-$1"; [ -z "$2" ] || rm -rf "$2"; }"#)
            .arg("guard")
            .arg(child.id().to_string())
            .arg(data.unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            // Ctrl-C ends all that is in the terminal's group, and the guard is to outlive that.
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        Self {
            name: name.to_owned(),
            child,
            guard,
            room: room.to_path_buf(),
            data: data.map(Path::to_path_buf),
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to standard output so far.
    pub fn out(&self) -> String {
        self.read("out")
    }

    /// What it has written to standard error so far.
    pub fn err(&self) -> String {
        self.read("err")
    }

    fn read(&self, file: &str) -> String {
        let bytes = std::fs::read(self.room.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Sends a signal; nothing if it has ended.
    pub fn signal(&self, signal: Signal) {
        // ESRCH: it has ended by itself.
        let _ = kill_process(self.raw_pid(), signal);
    }

    fn raw_pid(&self) -> Pid {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        pid.expect("a child has a process id")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not come `within` that time.
    pub fn wait(&mut self, within: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                start.elapsed() < within,
                "{} has not ended within {within:?}:\n{}",
                self.name,
                self.last_words()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to end (SIGTERM) and waits.
    ///
    /// # Panics
    /// If it does not end `within` that time.
    pub fn stop(&mut self, within: Duration) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait(within)
    }

    /// Resident memory, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))
            .unwrap_or_else(|e| panic!("{} is gone: {e}:\n{}", self.name, self.last_words()));
        let kib = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().strip_suffix(" kB"))
            .unwrap_or_else(|| {
                panic!(
                    "{} has no VmRSS: a zombie?\n{}",
                    self.name,
                    self.last_words()
                )
            });
        kib.trim().parse::<u64>().expect("VmRSS is a number") * 1024
    }

    /// Open file descriptors.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid()))
            .unwrap_or_else(|e| panic!("{} is gone: {e}:\n{}", self.name, self.last_words()))
            .count()
    }

    /// The end of its output and where the rest is, for a panic's message.
    pub fn last_words(&self) -> String {
        let mut words = String::new();
        for text in [self.out(), self.err()] {
            let lines: Vec<&str> = text.lines().collect();
            for line in &lines[lines.len().saturating_sub(25)..] {
                words.push_str(line);
                words.push('\n');
            }
        }
        words
            + &format!(
                "({}: all of its output is in {})",
                self.name,
                self.room.display()
            )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Once it has been waited for its number may be another's.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(self.raw_pid(), Signal::KILL);
        }
        let _ = self.child.wait();
        if let Some(mut pipe) = self.guard.stdin.take() {
            let _ = pipe.write_all(b"ended\n");
        }
        let _ = self.guard.wait();
        if let Some(data) = &self.data {
            let _ = std::fs::remove_dir_all(data);
        }
        if std::thread::panicking() {
            eprintln!("{}", self.last_words());
        }
    }
}
