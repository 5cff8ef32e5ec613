"""Curation."""

from polymnia.web.routes import Route

ROUTES: tuple[Route, ...] = ()
