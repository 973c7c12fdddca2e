//! What frames look like to people and to scripts; what of them is damaged, and what must not be seen.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

use klamp_codec::ApiKey;
use klamp_codec::render::{Broken, Cause, End, Form, Json, Line, Message, Render, Requests, Text};

/// Renders a frame, without its length field, that says it has `length` bytes.
fn render<F: Form + Default>(message: Message, length: usize, frame: &[u8]) -> (End, String) {
    let mut render = Render::new(message, length as u32, F::default());
    render.bytes(frame);
    let (end, mut form) = render.end();
    (end, std::mem::take(form.written()))
}

fn rendered<F: Form + Default>(message: Message, frame: &[u8]) -> String {
    render::<F>(message, frame.len(), frame).1
}

/// The head of a record batch and so many bytes of records.
fn batch(records: &[u8]) -> Vec<u8> {
    let mut batch = Vec::new();
    batch.extend(17_i64.to_be_bytes());
    batch.extend((49 + records.len() as i32).to_be_bytes());
    batch.extend(3_i32.to_be_bytes()); // leader epoch
    batch.push(2);
    batch.extend([0xcc; 4]); // checksum
    batch.extend(0x14_i16.to_be_bytes()); // zstd, transactional
    batch.extend(1_i32.to_be_bytes());
    batch.extend([0; 16]); // times
    batch.extend(4711_i64.to_be_bytes());
    batch.extend(5_i16.to_be_bytes());
    batch.extend(100_i32.to_be_bytes());
    batch.extend(2_i32.to_be_bytes());
    batch.extend(records);
    batch
}

/// A Produce v9 request with these records.
fn produce(records: &[u8]) -> Vec<u8> {
    let mut frame = b"\0\0\0\x09\0\0\0\x2a\0\x03app\x01\x05\x02\xaa\xbb".to_vec();
    frame.extend(b"\0\xff\xff\0\0\x75\x30\x02\x05\x1b[2J\x02\0\0\0\x04");
    let len = records.len() as u32 + 1;
    frame.extend([0x80 | (len & 0x7f) as u8, (len >> 7) as u8]);
    frame.extend(records);
    frame.extend(b"\0\0\0");
    frame
}

#[test]
fn a_request_is_shown_field_by_field_with_the_heads_of_its_batches() {
    let mut records = batch(b"the content of records");
    records.extend(batch(b"more of it"));
    let frame = produce(&records);
    let text = r#"Produce v9 request, correlation id 42, client id "app", 199 bytes
  unknown tagged field 5 of the header: (2 bytes, not kept)
  TransactionalId: null
  Acks: -1
  TimeoutMs: 30000
  TopicData: 1
    [0]
      Name: "\u{1b}[2J"
      PartitionData: 1
        [0]
          Index: 4
          Records: 154 bytes
            batch: base offset 17, leader epoch 3, 2 records, 83 bytes, codec zstd, producer id 4711, producer epoch 5, base sequence 100, transactional
            batch: base offset 17, leader epoch 3, 2 records, 71 bytes, codec zstd, producer id 4711, producer epoch 5, base sequence 100, transactional
"#;
    assert_eq!(rendered::<Text>(Message::Request, &frame), text);
    let json = r#"{"requestHeader":{"requestApiKey":0,"requestApiVersion":9,"correlationId":42,"clientId":"app","requestApiKeyName":"PRODUCE"},"request":{"transactionalId":null,"acks":-1,"timeoutMs":30000,"topicData":[{"name":"\u001b[2J","partitionData":[{"index":4,"recordsSizeInBytes":154}]}]}}
"#;
    assert_eq!(rendered::<Json>(Message::Request, &frame), json);
    assert_eq!(
        rendered::<Line>(Message::Request, &frame),
        "Produce v9 request, correlation id 42, client id \"app\", 199 bytes\n"
    );
}

#[test]
fn what_would_fool_a_terminal_is_escaped_and_other_text_is_not() {
    for (name, text, json) in [
        ("\u{9b}2J", r#""\u{9b}2J""#, r#""\u009b2J""#),
        ("\u{202e}x", r#""\u{202e}x""#, r#""\u202ex""#),
        ("\u{e0001}", r#""\u{e0001}""#, r#""\udb40\udc01""#),
        ("af\u{e9}", "\"af\u{e9}\"", "\"af\u{e9}\""),
        ("\u{1f980}", "\"\u{1f980}\"", "\"\u{1f980}\""),
    ] {
        let mut frame = produce(b"");
        let at = frame.windows(4).position(|it| it == b"\x1b[2J").unwrap();
        frame[at..at + 4].copy_from_slice(name.as_bytes());
        let told = rendered::<Text>(Message::Request, &frame);
        assert!(told.contains(&format!("Name: {text}\n")), "{told}");
        let told = rendered::<Json>(Message::Request, &frame);
        assert!(told.contains(&format!("\"name\":{json},")), "{told}");
    }
}

#[test]
fn records_that_are_no_batches_are_not_taken_for_some() {
    let batches = |records: &[u8]| {
        let text = rendered::<Text>(Message::Request, &produce(records));
        assert!(
            text.contains(&format!("Records: {} bytes\n", records.len())),
            "{text}"
        );
        let lines = text.lines().map(str::trim_start);
        let lines = lines.filter(|it| it.starts_with("batch: ") || it.starts_with("message: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(batches(&[2; 120]), [""; 0]);
    assert_eq!(batches(&[b'x'; 120]), [""; 0]);
    // A length that leads into the content of the next.
    let mut damaged = batch(b"");
    damaged[11] += 30;
    damaged.extend(batch(&[b'x'; 80]));
    assert_eq!(batches(&damaged).len(), 1);
    // Of before 0.11: offset, size, checksum, magic, attributes.
    let old = b"\0\0\0\0\0\0\0\x07\0\0\0\x0e\xcc\xcc\xcc\xcc\x01\x01key-value".repeat(2);
    let old = [&old[..26], &old[27..53]].concat();
    let told = batches(&[old.as_slice(), &[0xff; 60]].concat());
    assert_eq!(
        told,
        ["message: magic 1, offset 7, 26 bytes, codec gzip"; 2]
    );
}

const METADATA: Message = Message::Response(ApiKey::METADATA, 12);

/// A Metadata v12 response: one broker, one topic, one partition of it.
const METADATA_FRAME: &[u8] = b"\0\0\0\x07\0\0\0\0\0\x02\0\0\0\x01\x02h\0\0\x23\x84\0\0\
    \x03id\0\0\0\x01\x02\0\x06\x02t\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\x02\0\xfa\0\0\0\0\
    \0\0\0\x01\0\0\0\x03\x03\0\0\0\x01\0\0\0\x02\x01\x01\0\x80\0\0\0\0\0";

#[test]
fn a_response_is_shown_with_the_names_of_its_error_codes_and_lists_on_one_line() {
    let text = r#"Metadata v12 response, correlation id 7, 88 bytes
  ThrottleTimeMs: 0
  Brokers: 1
    [0]
      NodeId: 1
      Host: "h"
      Port: 9092
      Rack: null
  ClusterId: "id"
  ControllerId: 1
  Topics: 1
    [0]
      ErrorCode: NOT_LEADER_OR_FOLLOWER (6)
      Name: "t"
      TopicId: AAAAAAAAAAAAAAAAAAAAAQ
      IsInternal: true
      Partitions: 1
        [0]
          ErrorCode: UNNAMED_250 (250)
          PartitionIndex: 0
          LeaderId: 1
          LeaderEpoch: 3
          ReplicaNodes: [1, 2]
          IsrNodes: []
          OfflineReplicas: []
      TopicAuthorizedOperations: -2147483648
"#;
    assert_eq!(rendered::<Text>(METADATA, METADATA_FRAME), text);
    assert_eq!(
        rendered::<Line>(METADATA, METADATA_FRAME),
        "Metadata v12 response, correlation id 7, 88 bytes, NOT_LEADER_OR_FOLLOWER (6), \
         UNNAMED_250 (250)\n"
    );
}

#[test]
fn where_a_frame_broke_is_said_with_the_path_of_the_field() {
    let broken = |frame: &[u8], length: usize| {
        let (end, text) = render::<Text>(METADATA, length, frame);
        let End::Broken(broken) = end else {
            panic!("{end:?}");
        };
        assert!(text.ends_with(&format!("  {broken}\n")), "{text}");
        (broken.at, broken.path, broken.cause)
    };
    let length = METADATA_FRAME.len();
    let cut = |at: usize| broken(&METADATA_FRAME[..at - 4], length);
    let ends = |at: usize| Cause::Ends((length + 4 - at) as u64);
    assert_eq!(cut(6), (6, String::new(), ends(6)));
    assert_eq!(cut(19), (19, "Brokers[0]/Host".to_owned(), ends(19)));
    assert_eq!(cut(23), (23, "Brokers[0]/Port".to_owned(), ends(23)));
    let path = "Topics[0]/Partitions[0]/ReplicaNodes[1]";
    assert_eq!(cut(77), (77, path.to_owned(), ends(77)));

    let mut damaged = METADATA_FRAME.to_vec();
    damaged[9] = 0x7f;
    let (at, path, cause) = broken(&damaged, length);
    assert_eq!((at, path.as_str()), (13, "Brokers"));
    let said = "126 elements cannot fit in what is left of the message, but are promised";
    assert_eq!(cause.to_string(), said);
}

#[test]
fn what_has_no_layout_or_no_header_is_told_as_far_as_it_can_be() {
    let request = |frame: &[u8]| {
        let (end, text) = render::<Text>(Message::Request, frame.len(), frame);
        let End::Broken(Broken { cause, .. }) = end else {
            panic!("{end:?}");
        };
        let head = text.lines().next().unwrap().to_owned();
        let json = rendered::<Json>(Message::Request, frame);
        assert!(json.contains(&format!("\"cause\":\"{cause}\"")), "{json}");
        (cause, head)
    };
    let (cause, head) = request(b"\0\x03\0\x63\0\0\0\x01\xff\xff");
    assert_eq!(cause, Cause::NoLayout);
    assert_eq!(
        head,
        "Metadata v99 request, correlation id 1, no client id, 14 bytes"
    );
    let (cause, head) = request(b"\x27\x10\0\0\0\0\0\x01\0\x02\xff\x1b");
    assert_eq!(cause, Cause::NoLayout);
    let said = "api key 10000 v0 request, correlation id 1, client id b\"\\xff\\x1b\", 16 bytes";
    assert_eq!(head, said);
    assert_eq!(
        request(b"\0\x03\0\x09\0\0\0\x01\0\x10short").0,
        Cause::ClientId
    );
    for short in [&b""[..], b"\0\x03\0", b"\0\x03\0\x09\0\0\0\x01\xff"] {
        assert_eq!(request(short).0, Cause::TooShort);
    }
    assert_eq!(render::<Text>(METADATA, 3, b"\0\0\0").0, {
        let (at, path) = (7, String::new());
        End::Broken(Broken {
            at,
            path,
            cause: Cause::TooShort,
        })
    });
    // ControlledShutdown v0 has no client id.
    let lone = rendered::<Json>(Message::Request, b"\0\x07\0\0\0\0\0\x01\0\0\0\x09");
    let json = r#"{"requestHeader":{"requestApiKey":7,"requestApiVersion":0,"correlationId":1,"requestApiKeyName":"CONTROLLED_SHUTDOWN"},"request":{"brokerId":9}}
"#;
    assert_eq!(lone, json);
}

/// Kafka's own request log leaves it out.
#[test]
fn a_tagged_field_that_was_sent_is_told_even_if_it_has_its_default() {
    let mut frame = b"\0\0\0\x07\0\0\x01\0\0\0\0\x01\x01\x08".to_vec();
    frame.extend([0xff; 8]);
    let json = rendered::<Json>(Message::Response(ApiKey::API_VERSIONS, 3), &frame);
    let said = r#""response":{"errorCode":0,"apiKeys":[],"throttleTimeMs":0,"finalizedFeaturesEpoch":-1}}"#;
    assert!(json.trim_end().ends_with(said), "{json}");
}

#[test]
fn a_refusal_of_api_versions_is_read_in_the_shape_that_it_has() {
    let refusal = include_bytes!("clamp/captured/4.4.0-v6-unsupported.bin");
    for version in [0, 4, 6] {
        let message = Message::Response(ApiKey::API_VERSIONS, version);
        let text = rendered::<Text>(message, &refusal[4..]);
        let said = "  ErrorCode: UNSUPPORTED_VERSION (35)\n  ApiKeys: 1\n    [0]\n      \
            ApiKey: ApiVersions (18)\n      MinVersion: 0\n      MaxVersion: 5\n";
        assert_eq!(text.split_once('\n').unwrap().1, said);
    }
}

#[test]
fn bytes_behind_a_message_are_counted() {
    let frame = [METADATA_FRAME, b"12345"].concat();
    assert_eq!(
        render::<Text>(METADATA, frame.len(), &frame).0,
        End::Whole(5)
    );
    let json = rendered::<Json>(METADATA, &frame);
    assert!(json.ends_with("},\"trailingBytes\":5}\n"), "{json}");
    // Beyond the frame is another.
    let (end, text) = render::<Text>(METADATA, METADATA_FRAME.len(), &frame);
    assert_eq!(
        (end, text),
        (End::Whole(0), rendered::<Text>(METADATA, METADATA_FRAME))
    );
}

#[test]
fn a_secret_is_told_by_its_size_and_a_tagged_field_that_nobody_knows_too() {
    // SaslAuthenticate v2: a token, and a tagged field that nobody knows.
    let frame = b"\0\x24\0\x02\0\0\0\x01\xff\xff\0\x09\0ann\0pwd\x01\x07\x03hid";
    let text = rendered::<Text>(Message::Request, frame);
    assert_eq!(
        text.lines().skip(1).collect::<Vec<_>>(),
        [
            "  AuthBytes: (8 bytes, not kept)",
            "  unknown tagged field 7: (3 bytes, not kept)",
        ]
    );
    let json = rendered::<Json>(Message::Request, frame);
    let said = r#""request":{"authBytes":null,"authBytesSizeInBytes":8}}"#;
    assert!(json.trim_end().ends_with(said), "{json}");
}

#[test]
fn raw_sasl_tokens_are_not_taken_for_requests() {
    let handshake = b"\0\x11\0\0\0\0\0\x01\xff\xff\0\x05PLAIN";
    let metadata = b"\0\x03\0\0\0\0\0\x02\xff\xff\0\0\0\0";
    let token = b"\0Admin\0s3cret-of-many-bytes";
    let mut requests = Requests::default();
    // Nothing has said that there are tokens.
    assert_eq!(requests.next(token), Message::Request);
    for _ in 0..2 {
        assert_eq!(requests.next(handshake), Message::Request);
        for token in [token, &token[..3], b"", b"n,,n=user,r=nonce"] as [&[u8]; 4] {
            assert_eq!(requests.next(token), Message::Token);
        }
        assert_eq!(requests.next(metadata), Message::Request);
        assert_eq!(requests.next(token), Message::Request);
    }
    let told = "SASL token (27 bytes, not kept)\n";
    assert_eq!(rendered::<Text>(Message::Token, token), told);
    assert_eq!(rendered::<Line>(Message::Token, token), told);
    let json = "{\"saslToken\":null,\"saslTokenSizeInBytes\":27}\n";
    assert_eq!(rendered::<Json>(Message::Token, token), json);
    let (end, line) = render::<Line>(Message::Token, 28, &token[..8]);
    assert!(
        matches!(
            end,
            End::Broken(Broken {
                at: 12,
                cause: Cause::Ends(20),
                ..
            })
        ),
        "{end:?}"
    );
    assert!(!line.contains("Admin"), "{line}");
}

#[test]
fn a_string_longer_than_kafka_reads_is_not_held() {
    // ApiVersions v3: a software name of 100,000 bytes.
    let mut frame = b"\0\x12\0\x03\0\0\0\x01\xff\xff\0\xa1\x8d\x06".to_vec();
    frame.extend([b'x'; 100_000]);
    frame.extend(b"\x02y\0");
    let text = rendered::<Text>(Message::Request, &frame);
    assert!(text.len() < 33_000, "{}", text.len());
    assert!(text.contains("xxx\"… (100000 bytes)\n  ClientSoftwareVersion: \"y\"\n"));
}
