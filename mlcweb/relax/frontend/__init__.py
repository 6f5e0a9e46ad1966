"""Importers: models of other frameworks as modules of the graph level."""

from mlcweb.relax.frontend.common import detach_params
