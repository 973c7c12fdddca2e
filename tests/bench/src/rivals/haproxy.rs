//! HAProxy in TCP mode, as Debian builds it.
//!
//! The traps: it splices only when told to, and Debian does not tell it to, so it runs both ways; and
//! it does not start where it may not open as many descriptors as it could come to need, which are
//! two for a connection and two for a pipe.

use super::{SPARE, configuration, descriptors};
use crate::contender::{Contender, Running};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// The pipes that it splices through: two for a connection that moves large frames both ways.
const PIPES: u64 = 64;

/// HAProxy with or without `option splice-auto`.
pub(super) struct Haproxy {
    name: &'static str,
    splicing: bool,
}

/// As Debian configures it.
pub(super) const COPYING: Haproxy = Haproxy {
    name: "haproxy",
    splicing: false,
};

/// With `option splice-auto`.
pub(super) const SPLICING: Haproxy = Haproxy {
    name: "haproxy-splice",
    splicing: true,
};

impl Contender for Haproxy {
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
        let (pipes, splicing) = if self.splicing {
            (PIPES, "    option splice-auto\n")
        } else {
            (0, "")
        };
        let connections = (descriptors().saturating_sub(SPARE) / 2).saturating_sub(pipes);
        let text = format!(
            "global
    nbthread {threads}
    maxconn {}
    maxpipes {pipes}
defaults
    mode tcp
    timeout connect 10s
    timeout client 1h
    timeout server 1h
{splicing}listen kafka
    bind {listen}
    server upstream {upstream}
",
            connections.min(25_000)
        );
        let file = configuration(dir, "haproxy.cfg", &text)?;
        let mut command = Command::new("haproxy");
        // In the foreground.
        command.arg("-db").arg("-f").arg(file);
        Running::spawn(self.name, command, listen, dir)
    }
}
