"""A ledger recognises each of two linked tables, even if one of them is released alone."""

from __future__ import annotations

import pytest

from espalier.core.ledger import fingerprint
from espalier.core.tables.panel import digest_of_both
from espalier.core.tables.reading import read_table

SECRET = b"k" * fingerprint.KEY_BYTES
PEOPLE = read_table(b"id,age\n1,old\n2,young\n", "people.csv")
VISITS = read_table(b"id,day,diag\n1,1,a\n1,2,b\n2,1,a\n", "visits.csv")
OTHER = read_table(b"id,day,diag\n1,1,a\n", "other.csv")


@pytest.mark.parametrize("alone", [PEOPLE, VISITS])
def test_one_table_alone_is_known_from_both_and_both_from_one(alone):
    both = digest_of_both([PEOPLE, VISITS])
    assert fingerprint.matches(SECRET, alone.digest, fingerprint.mark(SECRET, both)) is True
    assert fingerprint.matches(SECRET, both, fingerprint.mark(SECRET, alone.digest)) is True
    assert fingerprint.matches(SECRET, OTHER.digest, fingerprint.mark(SECRET, both)) is False


def test_both_are_the_same_only_if_neither_changed():
    both, changed = digest_of_both([PEOPLE, VISITS]), digest_of_both([PEOPLE, OTHER])
    mark = fingerprint.mark(SECRET, both)
    assert fingerprint.matches(SECRET, both, mark, whole=True) is True
    assert fingerprint.matches(SECRET, changed, mark, whole=True) is False
    assert fingerprint.matches(SECRET, changed, mark) is True
    assert fingerprint.matches(SECRET, PEOPLE.digest, mark, whole=True) is False
