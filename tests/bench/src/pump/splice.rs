//! Moves pages from socket to socket through a pipe, without copying them. An idle connection holds no
//! pipe.

use rustix::net::{Shutdown, shutdown};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::net::TcpStream;

const PIPE: usize = 256 << 10;

thread_local! {
    /// Empty pipes, the outlet first.
    static POOL: RefCell<Vec<(OwnedFd, OwnedFd)>> = const { RefCell::new(Vec::new()) };
}

/// Until both ends have ended, or one direction failed.
pub(super) async fn both(client: &TcpStream, broker: &TcpStream) -> io::Result<()> {
    tokio::try_join!(one(client, broker), one(broker, client))?;
    Ok(())
}

async fn one(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    loop {
        from.readable().await?;
        let (outlet, inlet) = match POOL.with_borrow_mut(Vec::pop) {
            Some(pipe) => pipe,
            None => open()?,
        };
        // The pipe is empty here, so that WouldBlock means the socket is.
        let fill = || Ok(splice(from, None, &inlet, None, PIPE, flags)?);
        match from.try_io(Interest::READABLE, fill) {
            Ok(0) => return Ok(shutdown(to, Shutdown::Write)?),
            Ok(mut held) => {
                while held > 0 {
                    let drain = || Ok(splice(&outlet, None, to, None, held, flags)?);
                    held -= to.async_io(Interest::WRITABLE, drain).await?;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        POOL.with_borrow_mut(|pool| pool.push((outlet, inlet)));
    }
}

fn open() -> io::Result<(OwnedFd, OwnedFd)> {
    let (outlet, inlet) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    fcntl_setpipe_size(&inlet, PIPE)?;
    Ok((outlet, inlet))
}
