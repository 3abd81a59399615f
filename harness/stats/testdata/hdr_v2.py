"""HdrHistogram V2 in a few lines of plain Python, written from the format's description: the oracle of
histogram_test.cpp. Prints the base64 text for HIGHEST and pairs VALUE=COUNT.

usage: hdr_v2.py HIGHEST [VALUE=COUNT ...]
"""
import base64
import struct
import sys
import zlib


def index_of(value):
    bucket = max(value.bit_length() - 11, 0)  # 2048 sub-buckets: 11 bits
    sub = value >> bucket
    return sub if bucket == 0 else 1024 * (bucket + 1) + sub - 1024


def zigzag_leb128(number):
    number = number * 2 if number >= 0 else -number * 2 - 1
    out = bytearray()
    while number > 0x7F and len(out) < 8:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(highest, counts):
    slots = {}
    for value, count in counts.items():
        slots[index_of(value)] = slots.get(index_of(value), 0) + count
    payload, empty = b"", 0
    for index in range(max(slots, default=0) + 1):
        if slots.get(index, 0) == 0:
            empty += 1
            continue
        if empty:
            payload += zigzag_leb128(-empty if empty > 1 else 0)
        payload, empty = payload + zigzag_leb128(slots[index]), 0
    if empty:  # only an empty histogram ends so
        payload += zigzag_leb128(0)
    body = struct.pack(">IIIIQQd", 0x1C849313, len(payload), 0, 3, 1, highest, 1.0) + payload
    packed = zlib.compress(body)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


print(encode(int(sys.argv[1]), {int(v): int(c) for v, c in (a.split("=") for a in sys.argv[2:])}))
