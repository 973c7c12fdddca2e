//! Reads into a buffer and writes it out.

use std::io;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;

const BUFFER: usize = 64 << 10;

/// Until both ends have ended.
pub(super) async fn both(mut client: TcpStream, mut broker: TcpStream) -> io::Result<()> {
    copy_bidirectional_with_sizes(&mut client, &mut broker, BUFFER, BUFFER).await?;
    Ok(())
}
