"""Rules for devices with threads."""

from mlcweb.dlight.gpu.fallback import Fallback

__all__ = ["Fallback"]
