"""Engines in a page of headless Chromium."""
