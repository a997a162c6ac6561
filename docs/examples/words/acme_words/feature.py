"""Declarations of a feature; the rest is loaded when it is used."""

from dataclasses import dataclass

from flask_noderpc.feature import ApplicationKind, Feature, PageSet
from flask_noderpc.settings import setting
from flask_noderpc.settings.kinds import COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsSettings:
    words_longest: int = setting("words", 40, COUNT, "Most bytes of a word.", is_of_chain=True)


FEATURE = Feature(
    name="words",
    title="A chain of words",
    settings=WordsSettings,
    applications={"words": ApplicationKind(make="acme_words.words:words")},
    routes="acme_words.words:ROUTES",
    page_sets={
        "words": PageSet(
            blueprint="acme_words.words:words_bp", path="/words/", help="Serve /words."
        )
    },
)
