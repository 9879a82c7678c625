import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.screen.des import encrypt_block


@pytest.mark.parametrize(
    ("key", "block", "expected"),
    [
        ("133457799bbcdff1", "0123456789abcdef", "85e813540f0ab405"),
        ("0101010101010101", "95f8a5e5dd31d900", "8000000000000000"),
        ("8001010101010101", "0000000000000000", "95a8d72813daa94d"),
        ("7ca110454a1a6e57", "01a1d6d039776742", "690f5b0d9a26939b"),
        ("0131d9619dc1376e", "5cd54ca83def57da", "7a389d10354bd271"),
    ],
)
def test_published_blocks_come_out_as_published(key: str, block: str, expected: str) -> None:
    assert encrypt_block(bytes.fromhex(key), bytes.fromhex(block)).hex() == expected


@given(key=st.binary(min_size=8, max_size=8), block=st.binary(min_size=8, max_size=8))
def test_any_block_comes_out_as_from_an_established_library(key: bytes, block: bytes) -> None:
    oracle = Cipher(TripleDES(key * 3), ECB()).encryptor()  # thrice under one key is once
    assert encrypt_block(key, block) == oracle.update(block) + oracle.finalize()
