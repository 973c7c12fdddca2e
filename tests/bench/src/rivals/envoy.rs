//! Envoy's TCP proxy, from a static configuration.
//!
//! The trap: its circuit breaker lets 1,024 connections through by default, and drops the others.

use super::configuration;
use crate::contender::{Contender, Running};
use klamp_tests::place;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Envoy with as many workers as there are to be threads.
pub(super) struct Envoy;

/// `KLAMP_ENVOY`, else the one that `tests/bench/run` fetches.
pub(super) fn binary() -> io::Result<PathBuf> {
    let path = std::env::var_os("KLAMP_ENVOY").map_or_else(
        || place::target_dir().join("envoy/envoy/_bin/envoy"),
        PathBuf::from,
    );
    if path.is_file() {
        Ok(path)
    } else {
        let path = path.display();
        let message =
            format!("no Envoy at {path}: `tests/bench/run` fetches it, or name it in KLAMP_ENVOY");
        Err(io::Error::new(io::ErrorKind::NotFound, message))
    }
}

impl Contender for Envoy {
    fn name(&self) -> &str {
        "envoy"
    }

    fn start(
        &self,
        listen: SocketAddr,
        upstream: SocketAddr,
        threads: usize,
        dir: &Path,
    ) -> io::Result<Running> {
        let address = |address: SocketAddr| {
            let (ip, port) = (address.ip(), address.port());
            format!("{{ socket_address: {{ address: \"{ip}\", port_value: {port} }} }}")
        };
        let text = format!(
            "static_resources:
  listeners:
  - name: kafka
    address: {}
    filter_chains:
    - filters:
      - name: envoy.filters.network.tcp_proxy
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: kafka
          cluster: upstream
          idle_timeout: 0s
  clusters:
  - name: upstream
    type: STATIC
    connect_timeout: 10s
    circuit_breakers:
      thresholds: [ {{ max_connections: 100000, max_pending_requests: 100000 }} ]
    load_assignment:
      cluster_name: upstream
      endpoints: [ {{ lb_endpoints: [ {{ endpoint: {{ address: {} }} }} ] }} ]
",
            address(listen),
            address(upstream)
        );
        let file = configuration(dir, "envoy.yaml", &text)?;
        let mut command = Command::new(binary()?);
        command
            .arg("-c")
            .arg(file)
            .args(["--concurrency", &threads.to_string()])
            .args(["--log-level", "warning", "--disable-hot-restart"]);
        Running::spawn("envoy", command, listen, dir)
    }
}
