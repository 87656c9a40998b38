"""How right the estimates are, measured against published runs: the table behind every interval."""

from advisor.accuracy.memory import Judged, SourceAccuracy, accuracy_by_source, headline, judge, residual_rows, residuals
from advisor.accuracy.peers import PeerError, peer_errors
from advisor.accuracy.physics import PhysicsAccuracy, TracedStep, physics_accuracy, traced_steps
from advisor.accuracy.report import main, render_memory, render_physics, write_residuals
from advisor.accuracy.runs import Run, left_out, runs

__all__ = [
    "Judged",
    "PeerError",
    "PhysicsAccuracy",
    "Run",
    "SourceAccuracy",
    "TracedStep",
    "accuracy_by_source",
    "headline",
    "judge",
    "left_out",
    "main",
    "peer_errors",
    "physics_accuracy",
    "render_memory",
    "render_physics",
    "residual_rows",
    "residuals",
    "runs",
    "traced_steps",
    "write_residuals",
]
