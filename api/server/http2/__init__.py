"""HTTP/2 connections and their streams."""
