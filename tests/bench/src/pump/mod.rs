//! Proxies that only move bytes: what no proxy can do without. An acceptor deals the connections out
//! to one single-threaded runtime per thread, as klamp does.

mod copy;
mod splice;

use std::io;
use std::net::{SocketAddr, TcpListener};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::mpsc;

/// How bytes are moved.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum How {
    /// Through a buffer of 64 KiB per direction.
    Copy,
    /// Through a pipe of 256 KiB per direction.
    Splice,
}

/// Accepts on `listen` and moves bytes between each connection and one to `upstream`. Does not return
/// while it can accept.
///
/// # Errors
/// If it cannot listen or accept, or a thread cannot be started.
pub fn run(how: How, listen: SocketAddr, upstream: SocketAddr, threads: usize) -> io::Result<()> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(listen),
        socket2::Type::STREAM,
        None,
    )?;
    socket.set_reuse_address(true)?;
    socket.bind(&listen.into())?;
    socket.listen(4096)?;
    let listener = TcpListener::from(socket);
    let mut workers = Vec::new();
    for _ in 0..threads {
        workers.push(worker(how, upstream)?);
    }
    for worker in workers.iter().cycle() {
        let (client, _) = listener.accept()?;
        if worker.send(client).is_err() {
            return Err(io::Error::other("a thread has ended"));
        }
    }
    Err(io::Error::other("no thread"))
}

/// A thread that serves the connections it is sent.
fn worker(
    how: How,
    upstream: SocketAddr,
) -> io::Result<mpsc::UnboundedSender<std::net::TcpStream>> {
    let (sender, mut receiver) = mpsc::unbounded_channel::<std::net::TcpStream>();
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async move {
            while let Some(client) = receiver.recv().await {
                // An error ends the connection, as it would for any proxy; the source notices.
                tokio::spawn(async move {
                    let _ = serve(how, client, upstream).await;
                });
            }
        });
    });
    Ok(sender)
}

async fn serve(how: How, client: std::net::TcpStream, upstream: SocketAddr) -> io::Result<()> {
    client.set_nonblocking(true)?;
    let client = TcpStream::from_std(client)?;
    client.set_nodelay(true)?;
    let broker = TcpStream::connect(upstream).await?;
    broker.set_nodelay(true)?;
    match how {
        How::Copy => copy::both(client, broker).await,
        How::Splice => splice::both(&client, &broker).await,
    }
}
