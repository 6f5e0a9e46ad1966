"""Regions of images, and boxes: `topi.vision`."""

from mlcweb.topi.vision.anchors import multibox_transform_loc
from mlcweb.topi.vision.boxes import all_class_non_max_suppression
from mlcweb.topi.vision.regions import (
    roi_align,
    roi_align_nchw,
    roi_align_nhwc,
    roi_pool,
    roi_pool_nchw,
)
from mlcweb.topi.vision.suppression import get_valid_counts, non_max_suppression
