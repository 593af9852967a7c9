"""Reads TensorBoard's event files by the format's rules alone: record framing, masked CRC-32C, protobuf's wire format
with the field numbers of TensorFlow's event.proto and summary.proto. Shares no code and no library with what writes
them."""
import struct
from dataclasses import dataclass, field


class Damaged(Exception):
    pass


@dataclass
class Event:
    wall_time: float = 0.0
    step: int = 0
    file_version: str = ""
    scalars: dict = field(default_factory=dict)


def crc32c(data):
    """Bit by bit; polynomial 0x1EDC6F41, reflected (RFC 3720)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _checked(data, masked):
    crc = crc32c(data)
    if (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF != struct.unpack("<I", masked)[0]:
        raise Damaged("wrong checksum")
    return data


def records(data):
    """The payload of every record. Throws Damaged."""
    at = 0

    def take(count):
        nonlocal at
        if at + count > len(data):
            raise Damaged("cut off")
        at += count
        return data[at - count : at]

    found = []
    while at < len(data):
        length = _checked(take(8), take(4))
        found.append(_checked(take(struct.unpack("<Q", length)[0]), take(4)))
    return found


def fields(message):
    """[(number, value)]: an int of a varint, bytes of everything else. Throws Damaged."""
    at, found = 0, []

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            if at == len(message):
                raise Damaged("cut off in a varint")
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            found.append((number, varint()))
            continue
        if kind not in (1, 2, 5):
            raise Damaged(f"wire type {kind}")
        length = {1: 8, 5: 4}.get(kind) or varint()
        if at + length > len(message):
            raise Damaged("cut off in a field")
        found.append((number, message[at : at + length]))
        at += length
    return found


def _event(message):
    event = Event()
    for number, value in fields(message):
        if number == 1:
            [event.wall_time] = struct.unpack("<d", value)
        elif number == 2:
            event.step = value
        elif number == 3:
            event.file_version = value.decode()
        elif number == 5:
            for _, scalar in fields(value):
                parts = dict(fields(scalar))
                [event.scalars[parts[1].decode()]] = struct.unpack("<f", parts[2])
    return event


def read_events(path):
    """[Event] of a file. Throws Damaged."""
    return [_event(record) for record in records(path.read_bytes())]
