"""Failures of views that another attempt would not change."""


class ViewFailed(Exception):
    """The view cannot include the batch, now or later; the text is the reason."""
