//! nginx's stream module.
//!
//! The traps: Debian has the module in a package and a file of its own; a worker's connections count
//! both sides; and without `reuseport` one worker takes nearly all of few connections. Buffers stay
//! at their default of 16 KiB.

use super::{SPARE, configuration, descriptors};
use crate::contender::{Contender, Running};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// Where Debian has the module; a build of one's own may have it inside.
const MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

/// nginx with as many workers as there are to be threads.
pub(super) struct Nginx;

impl Contender for Nginx {
    fn name(&self) -> &str {
        "nginx"
    }

    fn start(
        &self,
        listen: SocketAddr,
        upstream: SocketAddr,
        threads: usize,
        dir: &Path,
    ) -> io::Result<Running> {
        let module = if Path::new(MODULE).exists() {
            format!("load_module {MODULE};\n")
        } else {
            String::new()
        };
        let text = format!(
            "{module}daemon off;
worker_processes {threads};
pid {};
error_log stderr warn;
events {{
    worker_connections {};
}}
stream {{
    server {{
        listen {listen} reuseport backlog=4096;
        proxy_pass {upstream};
        proxy_connect_timeout 10s;
        proxy_timeout 1h;
    }}
}}
",
            dir.join("nginx.pid").display(),
            descriptors().saturating_sub(SPARE).min(50_000)
        );
        let file = configuration(dir, "nginx.conf", &text)?;
        let mut command = Command::new("nginx");
        command
            .arg("-p")
            .arg(dir)
            .arg("-c")
            .arg(file)
            .args(["-e", "stderr"]);
        Running::spawn("nginx", command, listen, dir)
    }
}
