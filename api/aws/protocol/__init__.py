"""The AWS wire protocols: targets, codecs, signatures, errors and request ids."""
