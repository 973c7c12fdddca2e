"""Writes records to a topic and reads them again with a librdkafka of another version than the one that
the tests are built with, called as a C library: so any Python does.

Arguments: the library, bootstrap servers, a topic (one partition, empty), how many records, and a file: the
connections stay open until it is there. Before that it prints the library's version and what it has read.
"""

import ctypes
import os
import sys
import time

PRODUCER, CONSUMER = 0, 1
COPY = 2  # RD_KAFKA_MSG_F_COPY
BEGINNING = -2


class Message(ctypes.Structure):
    """rd_kafka_message_t"""

    _fields_ = [
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    ]


def load(path):
    library = ctypes.CDLL(path)
    for name in ["rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_topic_new"]:
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_version_str.restype = ctypes.c_char_p
    library.rd_kafka_consume.restype = ctypes.POINTER(Message)
    return library


def handle(library, kind, config):
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    error = ctypes.create_string_buffer(512)
    for name, value in config.items():
        if library.rd_kafka_conf_set(conf, name.encode(), value.encode(), error, ctypes.c_size_t(512)) != 0:
            sys.exit(error.value.decode())
    made = library.rd_kafka_new(kind, conf, error, ctypes.c_size_t(512))
    if made is None:
        sys.exit(error.value.decode())
    return ctypes.c_void_p(made)


def main(path, bootstrap, topic, count, hold):
    library = load(path)
    config = {"bootstrap.servers": bootstrap, "client.id": "an-old-client"}

    producer = handle(library, PRODUCER, config)
    to = ctypes.c_void_p(library.rd_kafka_topic_new(producer, topic.encode(), None))
    for number in range(count):
        value = b"record %d" % number
        sent = library.rd_kafka_produce(
            to, ctypes.c_int32(0), COPY, value, ctypes.c_size_t(len(value)), None, ctypes.c_size_t(0), None
        )
        if sent != 0:
            sys.exit("a record is not taken")
    if library.rd_kafka_flush(producer, 60_000) != 0:
        sys.exit("not all records are delivered")

    consumer = handle(library, CONSUMER, config)
    source = ctypes.c_void_p(library.rd_kafka_topic_new(consumer, topic.encode(), None))
    if library.rd_kafka_consume_start(source, ctypes.c_int32(0), ctypes.c_int64(BEGINNING)) != 0:
        sys.exit("the topic cannot be read")
    print(library.rd_kafka_version_str().decode())
    end = time.monotonic() + 60
    while count > 0:
        if time.monotonic() > end:
            sys.exit(f"{count} records have not come")
        message = library.rd_kafka_consume(source, ctypes.c_int32(0), 1_000)
        if message and message.contents.err == 0:
            print(ctypes.string_at(message.contents.payload, message.contents.len).decode())
            count -= 1
        if message:
            library.rd_kafka_message_destroy(message)
    print("ready", flush=True)
    while not os.path.exists(hold):
        time.sleep(0.05)


path, bootstrap, topic, count, hold = sys.argv[1:]
main(path, bootstrap, topic, int(count), hold)
