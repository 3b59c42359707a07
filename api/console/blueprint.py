"""The blueprint on which all pages of the console are."""

from typing import Final

from flask import Blueprint

__all__ = ["NAME", "PREFIX", "bp"]

NAME: Final = "console"
PREFIX: Final = "/console"

bp = Blueprint(NAME, __name__, url_prefix=PREFIX, template_folder="templates")
