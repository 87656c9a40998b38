"""How right the estimates are, measured against published runs: the table behind every interval."""

from advisor.accuracy.memory import Judged, SourceAccuracy, accuracy_by_source, headline, judge, residual_rows, residuals
from advisor.accuracy.peers import PeerError, peer_errors
from advisor.accuracy.report import main, render_memory, write_residuals
from advisor.accuracy.runs import Run, left_out, runs

__all__ = [
    "Judged",
    "PeerError",
    "Run",
    "SourceAccuracy",
    "accuracy_by_source",
    "headline",
    "judge",
    "left_out",
    "main",
    "peer_errors",
    "render_memory",
    "residual_rows",
    "residuals",
    "runs",
    "write_residuals",
]
