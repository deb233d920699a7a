"""Planning of views: from a query's text to the plans that its batches run."""
