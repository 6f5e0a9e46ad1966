"""Models of other frameworks as modules of the graph level; `nn` is for models of one's own."""

from mlcweb.relax.frontend import nn
from mlcweb.relax.frontend.common import detach_params
