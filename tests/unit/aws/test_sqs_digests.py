"""MD5 digests of bodies and attributes; the first three are recorded from AWS."""

import pytest

from api.aws.sqs.messages.digests import attributes_digest, body_digest, content_deduplication_id


@pytest.mark.parametrize(
    ("attributes", "digest"),
    [
        ([("Foo", "String", b"Bar")], "ae7155c6026991b6d54b11589678bf9c"),
        ([("Hello", "String", b"There")], "a311262e065454b75da111d535b8dacd"),
        (
            [
                ("Help.Me", "String", b"Me"),
                ("Hello", "String", b"There"),
                ("General", "String", b"Kenobi"),
            ],
            "4c360f3fdafd970e05fae2f149d997f5",
        ),
        ([("timestamp", "Number", b"1493147359900")], "235c5c510d26fb653d073faed50ae77c"),
        ([("a", "String", b"x")], "a512aac9938034acb0b3c3d965944bf1"),
        (
            [("a", "String", b"x"), ("n", "Number.int", b"42"), ("b", "Binary", b"\x00\x01")],
            "cd0157953ba41a36b89795cbed85dd53",
        ),
        ([], None),
    ],
)
def test_attributes_have_the_digest_that_clients_compute(attributes, digest):
    assert attributes_digest(attributes) == digest
    assert attributes_digest(attributes[::-1]) == digest


def test_body_has_the_digest_that_clients_compute():
    assert body_digest(b"hello") == "5d41402abc4b2a76b9719d911017c592"


def test_default_deduplication_id_is_sha256_of_body():
    assert (
        content_deduplication_id(b"hello")
        == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    )
