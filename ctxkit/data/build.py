"""Build the vocabularies of `ctxkit.bpe` from the public rank files, or check that the committed ones are right.

    python -m ctxkit.data.build FOLDER            write NAME.ctxv beside this script
    python -m ctxkit.data.build FOLDER --check    compare instead; exit 1 on a difference

FOLDER is a cache folder of tiktoken: it holds the rank files under the names that tiktoken gives them. Each is
checked against the SHA-256 that tiktoken expects. The classes of the characters are asked of tiktoken's own regex
engine, not of `unicodedata`: that one is as old or as new as the Python that runs it.

A vocabulary file, all numbers native unsigned 32 bit (`ctxkit.bpe.Vocabulary` reads it):

    "CTXV"  order mark  format  slot bits  tokens  bytes of all tokens  ranges  longest token  SHA-256 of the rank file
    slots    rank + 1 of the token at its place by CRC-32 with linear probing, 0 where empty
    offsets  where each token starts among the token bytes, one more than there are tokens
    ranges   first code point of each run of characters of one class
    classes  the class of each range, one byte, padded to 4
    tokens   their bytes, by rank
"""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from zlib import crc32

import tiktoken

from ctxkit.bpe import BYTE_ORDER_MARK, CLASSES, FORMAT, MAGIC

# name -> name in tiktoken's cache (SHA-1 of the address), SHA-256 of the contents, bits of the slot table
SOURCES = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        19,
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        18,
    ),
}


def read_ranks(data: bytes) -> list[bytes]:
    """Return the tokens of a rank file by rank; raise ValueError where a rank is missing or given twice."""
    ranks: dict[int, bytes] = {}
    for line in data.splitlines():
        token, rank = line.split()
        ranks[int(rank)] = b64decode(token)
    tokens = [ranks[rank] for rank in range(len(ranks))]
    if len(set(tokens)) != len(data.splitlines()):
        raise ValueError("a token or a rank occurs twice")
    return tokens


def find_classes() -> tuple[list[int], bytes]:
    """Return where runs of characters of one class start, and their classes, from U+0080 on."""
    single_bytes = {bytes([byte]): byte for byte in range(256)}
    engines = [
        (ord(sign), tiktoken.Encoding("class", pat_str=pattern, mergeable_ranks=single_bytes, special_tokens={}))
        for sign, pattern in CLASSES.items()
    ]
    starts, classes = [], bytearray()
    for code in range(0x80, 0x110000):
        char = "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
        sign = next((sign for sign, engine in engines if engine.encode_ordinary(char)), ord("!"))
        if not classes or classes[-1] != sign:
            starts.append(code)
            classes.append(sign)
    return starts, bytes(classes)


def pack(tokens: list[bytes], digest: str, bits: int, starts: list[int], classes: bytes) -> bytes:
    """Return the bytes of a vocabulary file."""
    slots = array("I", bytes(4 << bits))
    mask = (1 << bits) - 1
    for rank, token in enumerate(tokens):
        slot = crc32(token) & mask
        while slots[slot]:
            slot = (slot + 1) & mask
        slots[slot] = rank + 1
    offsets = array("I", accumulate(map(len, tokens), initial=0))
    longest = max(map(len, tokens))
    header = array("I", [BYTE_ORDER_MARK, FORMAT, bits, len(tokens), offsets[-1], len(starts), longest])
    parts = (
        MAGIC,
        header.tobytes(),
        bytes.fromhex(digest),
        slots.tobytes(),
        offsets.tobytes(),
        array("I", starts).tobytes(),
        classes + bytes(-len(classes) % 4),
        *tokens,
    )
    return b"".join(parts)


def main(folder: str, check: bool) -> int:
    """Write or check every vocabulary; return the exit code."""
    starts, classes = find_classes()
    wrong = 0
    for name, (cached, digest, bits) in SOURCES.items():
        ranks = (Path(folder) / cached).read_bytes()
        if sha256(ranks).hexdigest() != digest:
            print(f"{cached}: not the rank file of {name} that tiktoken expects")
            wrong += 1
            continue
        data = pack(read_ranks(ranks), digest, bits, starts, classes)
        target = Path(__file__).with_name(f"{name}.ctxv")
        if not check:
            target.write_bytes(data)
        same = target.read_bytes() == data
        wrong += not same
        print(f"{target.name}: {len(data)} bytes, {'right' if same else 'DIFFERENT'}")
    return min(wrong, 1)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    sys.exit(main(arguments[0], "--check" in sys.argv))
