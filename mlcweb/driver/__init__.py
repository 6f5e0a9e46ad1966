"""From the file of a model to its results, in few calls: `from mlcweb.driver import tvmc`."""

from mlcweb.driver import tvmc
