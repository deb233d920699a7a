"""Limits of users' SQL."""

from storage.domain.limits._shared import KIB

# Users' SQL
SQL_CHARACTERS_MAX = 16 * KIB  # the parser of Spark cannot be interrupted
SQL_NODES_MAX = 4_000  # of the parsed query, plan nodes and expressions together
SQL_DEPTH_MAX = 100  # of nested plan nodes and expressions
SQL_SCANS_MAX = 16  # relations that a query reads once its common table expressions are expanded
SQL_SIZE_MAX = 100_000  # by how much a query may enlarge a value: repeat, sequence, concat(x, x)
SQL_WINDOWS_MAX = 100  # hopping windows that a record is in
SQL_WIDTH_MAX = 1_000  # columns of a subquery, those of a relation counted as one
