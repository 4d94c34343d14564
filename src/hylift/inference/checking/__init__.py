"""Checks of answers by runs that know nothing of them."""

from hylift.inference.checking.answer import check_answer as check_answer
