"""Tests of the replacement of nested schemas."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from marshmallow import ValidationError

from flask_noderpc.wire.dialect import SchemaPatch
from flask_noderpc.wire.fields import IntString, Number, Text
from flask_noderpc.wire.schema import ListOf, Nested, OneOf, WireSchema, compiled


class Leaf(WireSchema):
    size = IntString()


class Twig(WireSchema):
    name = Text()
    leaf = Nested(Leaf)
    length = Number()


class Tree(WireSchema):
    twigs = ListOf(Twig)
    roots = ListOf(Number())


class NumberedLeaf(WireSchema):
    size = Number()


class Fruit(WireSchema):
    leaf = Nested(Leaf, nullable=True)


class Either(WireSchema):
    part = OneOf({SimpleNamespace: Leaf, str: Twig})


LEAF = SimpleNamespace(size=5)
TREE = SimpleNamespace(
    twigs=[SimpleNamespace(name="a", leaf=LEAF, length=1)], roots=[1], leaf=LEAF
)


def test_a_part_is_replaced_at_any_depth_and_in_its_place() -> None:
    schema = SchemaPatch({Leaf: NumberedLeaf})(Tree)

    shown = {"twigs": [{"name": "a", "leaf": {"size": 5}, "length": 1}], "roots": [1]}
    assert compiled(schema)(TREE) == schema().dump(TREE) == shown
    assert list(schema().dump(TREE)["twigs"][0]) == ["name", "leaf", "length"]
    assert schema().load(shown)["twigs"][0]["leaf"] == {"size": 5}


def test_a_schema_patch_leaves_the_original_unchanged() -> None:
    SchemaPatch({Leaf: NumberedLeaf})(Tree)

    assert compiled(Tree)(TREE)["twigs"][0]["leaf"] == {"size": "5"}


def test_the_parts_of_a_replacement_are_replaced_too() -> None:
    schema = SchemaPatch({Tree: Fruit, Leaf: NumberedLeaf})(Tree)

    assert compiled(schema)(TREE) == {"leaf": {"size": 5}}
    assert compiled(schema)(SimpleNamespace(leaf=None)) == {"leaf": None}


def test_a_field_of_several_kinds_has_them_replaced() -> None:
    schema = SchemaPatch({Leaf: NumberedLeaf})(Either)
    loaded = schema().load({"part": {"size": 5}})

    assert compiled(schema)(SimpleNamespace(part=LEAF)) == {"part": {"size": 5}}
    assert compiled(Either)(SimpleNamespace(part=LEAF)) == {"part": {"size": "5"}}
    assert loaded == {"part": {"size": 5}}
    with pytest.raises(ValidationError, match="required members of one of its types"):
        schema().load({"part": {"age": 5}})


def test_a_schema_with_nothing_to_replace_is_the_same() -> None:
    replaced = SchemaPatch({Fruit: NumberedLeaf})

    assert replaced(Tree) is Tree
    assert replaced(Either) is Either
    assert replaced(Fruit) is NumberedLeaf
    assert SchemaPatch({Leaf: NumberedLeaf})(Leaf) is NumberedLeaf


def test_a_schema_is_replaced_once() -> None:
    replaced = SchemaPatch({Leaf: NumberedLeaf})

    assert replaced(Tree) is replaced(Tree)
