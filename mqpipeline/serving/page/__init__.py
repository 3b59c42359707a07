"""The report as a page: one HTML file that needs nothing else, for screens, paper and mail."""

from mqpipeline.serving.page.render import html

__all__ = ["html"]
