"""The blueprint on which all pages of the console are."""

from typing import Final

from apiflask import APIBlueprint

__all__ = ["NAME", "PREFIX", "bp"]

NAME: Final = "console"
PREFIX: Final = "/console"

bp = APIBlueprint(NAME, __name__, url_prefix=PREFIX, template_folder="templates", enable_openapi=False)
