"""Regions of images, and boxes: `topi.vision`."""

from mlcweb.topi.vision.boxes import all_class_non_max_suppression
from mlcweb.topi.vision.regions import roi_align, roi_pool
