"""Codecs of the AWS protocols: query, XML, CBOR and event streams."""
