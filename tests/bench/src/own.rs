//! The contenders that are built here: none at all, the bare pumps, klamp.

use crate::contender::{Contender, Running};
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A contender of this workspace, which can also run under another program.
#[derive(Debug)]
pub struct Own {
    name: &'static str,
    program: Option<Program>,
    under: Vec<OsString>,
}

#[derive(Clone, Debug)]
struct Program {
    path: PathBuf,
    arguments: &'static [&'static str],
}

impl Own {
    /// All of them. `klamp` is klamp's binary.
    ///
    /// # Errors
    /// If this program's own file is not known.
    pub fn all(klamp: &Path) -> io::Result<Vec<Self>> {
        let pump = std::env::current_exe()?;
        let own = |name, path: &Path, arguments| Self {
            name,
            program: Some(Program {
                path: path.to_path_buf(),
                arguments,
            }),
            under: Vec::new(),
        };
        // More connections than the largest load has.
        const KLAMP: [&str; 4] = ["run", "--max-connections", "20000", "--clamp"];
        const ENCODE: &[&str] = &[KLAMP[0], KLAMP[1], KLAMP[2], KLAMP[3], "encode"];
        const OFF: &[&str] = &[KLAMP[0], KLAMP[1], KLAMP[2], KLAMP[3], "off"];
        // What the recorder costs is the difference to `klamp`.
        const NO_TAPE: &[&str] = &[
            KLAMP[0],
            KLAMP[1],
            KLAMP[2],
            KLAMP[3],
            "encode",
            "--capture-memory",
            "0",
        ];
        Ok(vec![
            Self {
                name: "direct",
                program: None,
                under: Vec::new(),
            },
            own("copy", &pump, &["pump", "copy"]),
            own("splice", &pump, &["pump", "splice"]),
            own("klamp", klamp, ENCODE),
            own("klamp-off", klamp, OFF),
            own("klamp-notape", klamp, NO_TAPE),
        ])
    }

    /// The same under another program (with its arguments), if there is a process at all.
    pub fn under(&self, program: Vec<OsString>) -> Option<Self> {
        Some(Self {
            name: self.name,
            program: Some(self.program.clone()?),
            under: program,
        })
    }
}

impl Contender for Own {
    fn name(&self) -> &str {
        self.name
    }

    fn start(
        &self,
        listen: SocketAddr,
        upstream: SocketAddr,
        threads: usize,
        dir: &Path,
    ) -> io::Result<Running> {
        let Some(program) = &self.program else {
            return Ok(Running::nothing());
        };
        let mut words = self.under.iter();
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&program.path);
                command
            }
            None => Command::new(&program.path),
        };
        command
            .args(program.arguments)
            .args(["--listen", &listen.to_string()])
            .args(["--upstream", &upstream.to_string()])
            .args(["--threads", &threads.to_string()]);
        Running::spawn(self.name, command, listen, dir)
    }
}
