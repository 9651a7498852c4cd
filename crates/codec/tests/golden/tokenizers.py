"""Makes `tokenizers/`: a small file of each kind, which the tests load and the fuzz target begins from.

    python3 crates/codec/tests/golden/tokenizers.py
"""

import base64
import json
import struct
from pathlib import Path

FOLDER = Path(__file__).parent / "tokenizers"
SPACE = "\u2581"


def alphabet():
    """GPT-2's characters for the 256 bytes."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) if byte in visible else chr(0x100 + hidden.index(byte)) for byte in range(256)}


def write(name, content):
    (FOLDER / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def as_json(content):
    return json.dumps(content, ensure_ascii=False, indent=None, separators=(",", ":")) + "\n"


def field(number, content):
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(number):
    more, rest = divmod(number, 128)
    return bytes([rest | 128]) + varint(more) if more else bytes([rest])


def charsmap():
    """A double array with one entry: `A` becomes `a`."""
    units = [0] * 128
    units[0x41] = 1 << 10 | 1 << 8 | 0x41
    units[0x40] = 1 << 31
    tree = struct.pack("<128I", *units)
    return struct.pack("<I", len(tree)) + tree + b"a\0"


def sentencepiece(kind, pieces):
    file = b""
    for text, score, piece_kind in pieces:
        file += field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, piece_kind]))
    return file + field(2, bytes([0x18, kind])) + field(3, field(2, charsmap()))


def main():
    FOLDER.mkdir(exist_ok=True)
    bytes_of_fallback = [[f"<0x{byte:02X}>", -20.0] for byte in range(256)]
    unigram = [["<unk>", 0.0], [SPACE, -2.0], ["a", -3.0], [SPACE + "a", -3.5], ["ab", -4.0], ["b", -3.0]]
    write("unigram.json", as_json({
        "added_tokens": [{"id": 0, "content": "<unk>"}],
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": unigram + bytes_of_fallback},
    }))
    write("pairs.json", as_json({
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": SPACE},
            {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        ]},
        "model": {
            "type": "BPE", "unk_token": "<unk>", "fuse_unk": True,
            "vocab": {"<unk>": 0, SPACE: 1, "a": 2, "b": 3, "ab": 4, SPACE + "ab": 5},
            "merges": ["a b", [SPACE, "ab"]],
        },
    }))
    names = [*list(alphabet().values()), "ab", "Ġab"]
    vocabulary = {name: number for number, name in enumerate(names)}
    merges = ["a b", "\u0120 ab"]
    precompiled = base64.b64encode(charsmap()).decode()
    write("bytes.json", as_json({
        "added_tokens": [{"id": 258, "content": "<|end|>", "lstrip": True, "rstrip": True, "normalized": True}],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Lowercase"}, {"type": "NFC"}, {"type": "Strip", "strip_left": True, "strip_right": False},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            {"type": "Precompiled", "precompiled_charsmap": precompiled},
        ]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        ]},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges, "ignore_merges": True},
    }))
    # Two files in one, as the fuzz target takes them.
    write("gpt2.pair", as_json(vocabulary).encode() + b"\0" + "\n".join(["#version: 0.2", *merges, ""]).encode())
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b" ab"]
    write("ranks.tiktoken", "".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens)))
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), (SPACE + "ab", -1.0, 1), ("ab", -0.5, 1), (SPACE, -3.0, 1)]
    pieces += [("a", -4.0, 1), ("b", -5.0, 1), ("<sep>", 0.0, 4)]
    write("unigram.model", sentencepiece(1, pieces))
    write("pairs.model", sentencepiece(2, pieces))


main()
