"""DES of one block, for the one protocol that still asks for it: the password check of VNC (RFC 6143, 7.2.2).

It protects nothing by itself; the screen it opens is on the loopback address, and viewers come through the relay's own token.
Written out because the agent carries no cryptography library. Bits are counted from 1 at the most significant end, as in the
standard's tables.
"""

from collections.abc import Iterator, Sequence

BLOCK_BYTES = 8
_HALF = 0xFFFFFFFF
_KEY_HALF_BITS = 28
_KEY_HALF = (1 << _KEY_HALF_BITS) - 1

_FIRST = [start - 8 * step for start in (58, 60, 62, 64, 57, 59, 61, 63) for step in range(8)]
_LAST = [_FIRST.index(position) + 1 for position in range(1, 65)]  # undoes it
_EXPAND = [(4 * group + bit - 1) % 32 + 1 for group in range(8) for bit in range(6)]  # groups share their edges
_SPREAD = [
    16,
    7,
    20,
    21,
    29,
    12,
    28,
    17,
    1,
    15,
    23,
    26,
    5,
    18,
    31,
    10,
    2,
    8,
    24,
    14,
    32,
    27,
    3,
    9,
    19,
    13,
    30,
    6,
    22,
    11,
    4,
    25,
]
_KEY_CHOICE = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
    63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
]  # fmt: skip
_ROUND_CHOICE = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
    41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
]  # fmt: skip
_TURNS = (1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1)
_BOXES = (  # four rows of sixteen hexadecimal digits each
    "e4d12fb83a6c59070f74e2d1a6cb953841e8d62bfc973a50fc8249175b3ea06d",
    "f18e6b34972dc05a3d47f28ec01a69b50e7ba4d158c6932fd8a13f42b67c05e9",
    "a09e63f51dc7b428d709346a285ecbf1d6498f30b12c5ae71ad069874fe3b52c",
    "7de3069a1285bc4fd8b56f03472c1ae9a690cb7df13e52843f06a1d8945bc72e",
    "2c417ab6853fd0e9eb2c47d150fa3986421bad78f9c5630eb8c71e2d6f09a453",
    "c1af92680d34e75baf427c9561de0b389ef528c3704a1db6432c95fabe17608d",
    "4b2ef08d3c975a61d0b7491ae35c2f8614bdc37eaf6805926bd814a7950fe23c",
    "d2846fb1a93e50c71fd8a374c56b0e927b419ce206adf35821e74a8dfc90356b",
)


def encrypt_block(key: bytes, block: bytes) -> bytes:
    """Eight bytes under a key of eight bytes, whose lowest bits do not count."""
    state = _permuted(int.from_bytes(block), 64, _FIRST)
    left, right = state >> 32, state & _HALF
    for round_key in _round_keys(key):
        left, right = right, left ^ _scrambled(right, round_key)
    return _permuted(right << 32 | left, 64, _LAST).to_bytes(BLOCK_BYTES)


def _round_keys(key: bytes) -> Iterator[int]:
    chosen = _permuted(int.from_bytes(key), 64, _KEY_CHOICE)
    halves = [chosen >> _KEY_HALF_BITS, chosen & _KEY_HALF]
    for turn in _TURNS:
        halves = [(half << turn | half >> (_KEY_HALF_BITS - turn)) & _KEY_HALF for half in halves]
        yield _permuted(halves[0] << _KEY_HALF_BITS | halves[1], 56, _ROUND_CHOICE)


def _scrambled(half: int, round_key: int) -> int:
    mixed = _permuted(half, 32, _EXPAND) ^ round_key
    out = 0
    for number, box in enumerate(_BOXES):
        six = mixed >> (42 - 6 * number) & 0x3F
        row, column = six >> 4 & 2 | six & 1, six >> 1 & 0xF
        out = out << 4 | int(box[row * 16 + column], 16)
    return _permuted(out, 32, _SPREAD)


def _permuted(value: int, bits: int, table: Sequence[int]) -> int:
    out = 0
    for position in table:
        out = out << 1 | value >> (bits - position) & 1
    return out
