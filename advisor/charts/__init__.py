"""Altair charts of a plan: shapes without rows, and the rows of a plan, kept apart."""

import sys

# jsonschema's optional IRI checker builds some 35 parsers at import, 1 to 2 s; no Vega-Lite schema uses IRIs.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
