//! Frames written by hand: versions that no encoder has, and bytes that no encoder writes.

/// A frame's bytes in the making, length field excluded.
#[derive(Clone, Debug, Default)]
pub struct Raw(Vec<u8>);

impl Raw {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A request header v1: key, version, correlation id, client id.
    pub fn request(
        api_key: i16,
        api_version: i16,
        correlation_id: i32,
        client_id: Option<&str>,
    ) -> Self {
        Self::new()
            .i16(api_key)
            .i16(api_version)
            .i32(correlation_id)
            .string(client_id)
    }

    /// A response header v0.
    pub fn response(correlation_id: i32) -> Self {
        Self::new().i32(correlation_id)
    }

    pub fn i8(self, value: i8) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    pub fn i16(self, value: i16) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    pub fn i32(self, value: i32) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    pub fn i64(self, value: i64) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Bytes as they are.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A classic nullable string.
    pub fn string(self, value: Option<&str>) -> Self {
        match value {
            None => self.i16(-1),
            Some(value) => self
                .i16(i16::try_from(value.len()).expect("a short string"))
                .bytes(value.as_bytes()),
        }
    }

    /// A compact nullable string.
    pub fn compact_string(self, value: Option<&str>) -> Self {
        match value {
            None => self.uvarint(0),
            Some(value) => self
                .uvarint(u32::try_from(value.len() + 1).expect("a short string"))
                .bytes(value.as_bytes()),
        }
    }

    /// Classic bytes with their length before them.
    pub fn sized(self, value: &[u8]) -> Self {
        self.i32(i32::try_from(value.len()).expect("few bytes"))
            .bytes(value)
    }

    /// An unsigned varint: a compact length, a count, a tag.
    pub fn uvarint(mut self, mut value: u32) -> Self {
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                self.0.push(low);
                return self;
            }
            self.0.push(low | 0x80);
        }
    }

    /// The end of a flexible struct without tagged fields.
    pub fn no_tags(self) -> Self {
        self.uvarint(0)
    }

    /// The whole frame: its length, then what was written.
    pub fn frame(self) -> Vec<u8> {
        framed(&self.0)
    }
}

/// A frame of these bytes.
pub fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(bytes.len())
        .expect("a frame below 4 GiB")
        .to_be_bytes()
        .to_vec();
    frame.extend_from_slice(bytes);
    frame
}

/// A Produce request in versions 0 to 2, which no encoder has: acks, timeout, one topic of one partition.
pub fn old_produce(
    api_version: i16,
    correlation_id: i32,
    acks: i16,
    topic: &str,
    records: &[u8],
) -> Vec<u8> {
    assert!(
        (0..=2).contains(&api_version),
        "Produce v{api_version} has an encoder"
    );
    Raw::request(0, api_version, correlation_id, Some("old"))
        .i16(acks)
        .i32(1500)
        .i32(1)
        .string(Some(topic))
        .i32(1)
        .i32(0)
        .sized(records)
        .frame()
}

/// Its response: one topic of one partition, with `error`.
pub fn old_produced(api_version: i16, correlation_id: i32, topic: &str, error: i16) -> Vec<u8> {
    let mut raw = Raw::response(correlation_id)
        .i32(1)
        .string(Some(topic))
        .i32(1)
        .i32(0)
        .i16(error)
        .i64(7);
    if api_version >= 2 {
        raw = raw.i64(-1);
    }
    if api_version >= 1 {
        raw = raw.i32(0);
    }
    raw.frame()
}

/// An ApiVersions request v5 (KIP-1242), with a cluster and node id.
pub fn api_versions_v5(correlation_id: i32, cluster_id: Option<&str>, node_id: i32) -> Vec<u8> {
    Raw::request(18, 5, correlation_id, Some("five"))
        .no_tags()
        .compact_string(Some("tests"))
        .compact_string(Some("5.0"))
        .compact_string(cluster_id)
        .i32(node_id)
        .no_tags()
        .frame()
}

/// An ApiVersions request of a version from the future: a header that reads, and a body nobody knows.
pub fn api_versions_beyond(api_version: i16, correlation_id: i32) -> Vec<u8> {
    Raw::request(18, api_version, correlation_id, Some("future"))
        .no_tags()
        .bytes(b"\x07future\x02what no one knows")
        .frame()
}

/// The answer to such a request (KIP-511): body v0, error 35, one row for key 18.
pub fn unsupported_version(correlation_id: i32, min: i16, max: i16) -> Vec<u8> {
    Raw::response(correlation_id)
        .i16(35)
        .i32(1)
        .i16(18)
        .i16(min)
        .i16(max)
        .frame()
}

/// A Fetch request in versions 0 to 3, which no encoder has: one topic of one partition.
pub fn old_fetch(api_version: i16, correlation_id: i32, max_wait_ms: i32) -> Vec<u8> {
    assert!(
        (0..=3).contains(&api_version),
        "Fetch v{api_version} has an encoder"
    );
    let mut raw = Raw::request(1, api_version, correlation_id, Some("old"))
        .i32(-1)
        .i32(max_wait_ms)
        .i32(1);
    if api_version >= 3 {
        raw = raw.i32(1 << 20);
    }
    raw.i32(1)
        .string(Some("t"))
        .i32(1)
        .i32(0)
        .i64(0)
        .i32(1 << 20)
        .frame()
}

/// Its response: one topic of one partition, with `error` and `records`.
pub fn old_fetched(api_version: i16, correlation_id: i32, error: i16, records: &[u8]) -> Vec<u8> {
    let mut raw = Raw::response(correlation_id);
    if api_version >= 1 {
        raw = raw.i32(0);
    }
    raw.i32(1)
        .string(Some("t"))
        .i32(1)
        .i32(0)
        .i16(error)
        .i64(42)
        .sized(records)
        .frame()
}
