"""Schemas within schemas, replaced."""

from __future__ import annotations

from types import SimpleNamespace

from flask_noderpc.wire.fields import IntString, Number, Text
from flask_noderpc.wire.replacing import Replacing
from flask_noderpc.wire.schema import ListOf, Shape, WireSchema, compiled


class Leaf(WireSchema):
    size = IntString()


class Twig(WireSchema):
    name = Text()
    leaf = Shape(Leaf)
    length = Number()


class Tree(WireSchema):
    twigs = ListOf(Twig)
    roots = ListOf(Number())


class NumberedLeaf(WireSchema):
    size = Number()


class Fruit(WireSchema):
    leaf = Shape(Leaf, nullable=True)


LEAF = SimpleNamespace(size=5)
TREE = SimpleNamespace(
    twigs=[SimpleNamespace(name="a", leaf=LEAF, length=1)], roots=[1], leaf=LEAF
)


def test_a_part_is_replaced_at_any_depth_and_in_its_place() -> None:
    schema = Replacing({Leaf: NumberedLeaf})(Tree)

    shown = {"twigs": [{"name": "a", "leaf": {"size": 5}, "length": 1}], "roots": [1]}
    assert compiled(schema)(TREE) == schema().dump(TREE) == shown
    assert list(schema().dump(TREE)["twigs"][0]) == ["name", "leaf", "length"]
    assert schema().load(shown)["twigs"][0]["leaf"] == {"size": 5}


def test_what_was_there_before_stays() -> None:
    Replacing({Leaf: NumberedLeaf})(Tree)

    assert compiled(Tree)(TREE)["twigs"][0]["leaf"] == {"size": "5"}


def test_the_parts_of_a_replacement_are_replaced_too() -> None:
    schema = Replacing({Tree: Fruit, Leaf: NumberedLeaf})(Tree)

    assert compiled(schema)(TREE) == {"leaf": {"size": 5}}
    assert compiled(schema)(SimpleNamespace(leaf=None)) == {"leaf": None}


def test_a_schema_with_nothing_to_replace_is_the_same() -> None:
    replaced = Replacing({Fruit: NumberedLeaf})

    assert replaced(Tree) is Tree
    assert replaced(Fruit) is NumberedLeaf
    assert Replacing({Leaf: NumberedLeaf})(Leaf) is NumberedLeaf


def test_a_schema_is_replaced_once() -> None:
    replaced = Replacing({Leaf: NumberedLeaf})

    assert replaced(Tree) is replaced(Tree)
